package openkruise

import (
	"regexp"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/refit-project/refit/api/v1beta1"
)

const (
	// mostContainers and mostItems are the limits of lists in Refit's CRD of SidecarSets.
	mostContainers = 32
	mostItems      = 64
	// mostRevisions is the limit of spec.revisionHistoryLimit in Refit's CRD.
	mostRevisions = 1000
)

// percentage is the rule of Refit's CRD for percentages.
var percentage = regexp.MustCompile(`^(100|[0-9]{1,2})%$`)

// schemaErrors returns the fields that Refit's CRD refuses and OpenKruise accepts. The CRD is not installed yet when this
// is of interest, so the API server cannot be asked.
func schemaErrors(spec *v1beta1.SidecarSetSpec) field.ErrorList {
	at := field.NewPath("spec")
	var errs field.ErrorList
	for _, list := range []struct {
		name      string
		has, most int
	}{
		{"initContainers", len(spec.InitContainers), mostContainers}, {"containers", len(spec.Containers), mostContainers},
		{"volumes", len(spec.Volumes), mostItems}, {"imagePullSecrets", len(spec.ImagePullSecrets), mostContainers},
		{"patchPodMetadata", len(spec.PatchPodMetadata), mostContainers},
	} {
		errs = append(errs, tooMany(at.Child(list.name), list.has, list.most)...)
	}
	if limit := spec.RevisionHistoryLimit; limit != nil && (*limit < 1 || *limit > mostRevisions) {
		errs = append(errs, field.Invalid(at.Child("revisionHistoryLimit"), *limit, "must be between 1 and "+strconv.Itoa(mostRevisions)))
	}
	strategy := at.Child("updateStrategy")
	errs = append(errs, tooMany(strategy.Child("scatterStrategy"), len(spec.UpdateStrategy.ScatterStrategy), mostItems)...)
	errs = append(errs, wrongShare(strategy.Child("partition"), spec.UpdateStrategy.Partition)...)
	errs = append(errs, wrongShare(strategy.Child("maxUnavailable"), spec.UpdateStrategy.MaxUnavailable)...)
	for i := range spec.InitContainers {
		errs = append(errs, containerErrors(at.Child("initContainers").Index(i), &spec.InitContainers[i])...)
	}
	for i := range spec.Containers {
		errs = append(errs, containerErrors(at.Child("containers").Index(i), &spec.Containers[i])...)
	}
	return errs
}

func containerErrors(at *field.Path, c *v1beta1.SidecarContainer) field.ErrorList {
	errs := tooMany(at.Child("transferEnv"), len(c.TransferEnv), mostItems)
	for i := range c.TransferEnv {
		env, at := &c.TransferEnv[i], at.Child("transferEnv").Index(i)
		if env.SourceContainerName == "" && (env.SourceContainerNameFrom == nil || env.SourceContainerNameFrom.FieldRef == nil) {
			errs = append(errs, field.Required(at.Child("sourceContainerName"), "or sourceContainerNameFrom"))
		}
		if env.EnvName == "" && len(env.EnvNames) == 0 {
			errs = append(errs, field.Required(at.Child("envName"), "or envNames"))
		}
	}
	if upgrade := &c.UpgradeStrategy; upgrade.UpgradeType == v1beta1.HotUpgrade && upgrade.HotUpgradeEmptyImage == "" {
		errs = append(errs, field.Required(at.Child("upgradeStrategy", "hotUpgradeEmptyImage"), "for upgradeType "+string(v1beta1.HotUpgrade)))
	}
	return errs
}

func tooMany(at *field.Path, has, most int) field.ErrorList {
	if has <= most {
		return nil
	}
	return field.ErrorList{field.TooMany(at, has, most)}
}

func wrongShare(at *field.Path, value *intstr.IntOrString) field.ErrorList {
	if value == nil || value.Type == intstr.Int && value.IntVal >= 0 || value.Type == intstr.String && percentage.MatchString(value.StrVal) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, value.String(), "must be a number, or a percentage of at most 100")}
}
