package podrules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Volumes returns the errors of volumes that have their defaults.
func Volumes(list []corev1.Volume, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range list {
		name, at := list[i].Name, at.Index(i)
		for _, message := range validation.IsDNS1123Label(name) {
			errs = append(errs, field.Invalid(at.Child("name"), name, message))
		}
		if names[name] {
			errs = append(errs, field.Duplicate(at.Child("name"), name))
		}
		names[name] = true
		if kinds := given(list[i].VolumeSource); len(kinds) > 1 {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("only one of %v can be given", kinds)))
		}
		errs = append(errs, source(&list[i].VolumeSource, at)...)
	}
	return errs
}

func source(v *corev1.VolumeSource, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	required := func(value string, at *field.Path) {
		if value == "" {
			errs = append(errs, field.Required(at, ""))
		}
	}
	if v.HostPath != nil {
		required(v.HostPath.Path, at.Child("hostPath", "path"))
		if slices.Contains(strings.Split(v.HostPath.Path, "/"), "..") {
			errs = append(errs, field.Invalid(at.Child("hostPath", "path"), v.HostPath.Path, "must not contain '..'"))
		}
		if v.HostPath.Type != nil {
			errs = append(errs, oneOf(*v.HostPath.Type, at.Child("hostPath", "type"), corev1.HostPathUnset, corev1.HostPathDirectoryOrCreate, corev1.HostPathDirectory,
				corev1.HostPathFileOrCreate, corev1.HostPathFile, corev1.HostPathSocket, corev1.HostPathCharDev, corev1.HostPathBlockDev)...)
		}
	}
	if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil && v.EmptyDir.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(at.Child("emptyDir", "sizeLimit"), "must not be negative"))
	}
	if v.PersistentVolumeClaim != nil {
		required(v.PersistentVolumeClaim.ClaimName, at.Child("persistentVolumeClaim", "claimName"))
	}
	if v.CSI != nil {
		required(v.CSI.Driver, at.Child("csi", "driver"))
	}
	if v.NFS != nil {
		required(v.NFS.Server, at.Child("nfs", "server"))
		required(v.NFS.Path, at.Child("nfs", "path"))
	}
	if v.Secret != nil {
		required(v.Secret.SecretName, at.Child("secret", "secretName"))
		errs = append(errs, keys(v.Secret.Items, v.Secret.DefaultMode, at.Child("secret"))...)
	}
	if v.ConfigMap != nil {
		required(v.ConfigMap.Name, at.Child("configMap", "name"))
		errs = append(errs, keys(v.ConfigMap.Items, v.ConfigMap.DefaultMode, at.Child("configMap"))...)
	}
	if v.DownwardAPI != nil {
		errs = append(errs, mode(v.DownwardAPI.DefaultMode, at.Child("downwardAPI", "defaultMode"))...)
		errs = append(errs, files(v.DownwardAPI.Items, at.Child("downwardAPI", "items"))...)
	}
	if v.Projected != nil {
		errs = append(errs, projected(v.Projected, at.Child("projected"))...)
	}
	return errs
}

func projected(v *corev1.ProjectedVolumeSource, at *field.Path) field.ErrorList {
	errs := mode(v.DefaultMode, at.Child("defaultMode"))
	for i := range v.Sources {
		s, at := &v.Sources[i], at.Child("sources").Index(i)
		if kinds := given(*s); len(kinds) > 1 {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("only one of %v can be given", kinds)))
		}
		if s.Secret != nil {
			errs = append(errs, keys(s.Secret.Items, nil, at.Child("secret"))...)
		}
		if s.ConfigMap != nil {
			errs = append(errs, keys(s.ConfigMap.Items, nil, at.Child("configMap"))...)
		}
		if s.DownwardAPI != nil {
			errs = append(errs, files(s.DownwardAPI.Items, at.Child("downwardAPI", "items"))...)
		}
		if token := s.ServiceAccountToken; token != nil {
			if token.ExpirationSeconds != nil {
				errs = append(errs, inRange(*token.ExpirationSeconds, 600, 1<<32, at.Child("serviceAccountToken", "expirationSeconds"))...)
			}
			errs = append(errs, file(token.Path, at.Child("serviceAccountToken", "path"))...)
		}
	}
	return errs
}

func keys(items []corev1.KeyToPath, defaultMode *int32, at *field.Path) field.ErrorList {
	errs := mode(defaultMode, at.Child("defaultMode"))
	for i := range items {
		at := at.Child("items").Index(i)
		if items[i].Key == "" {
			errs = append(errs, field.Required(at.Child("key"), ""))
		}
		errs = append(errs, file(items[i].Path, at.Child("path"))...)
		errs = append(errs, mode(items[i].Mode, at.Child("mode"))...)
	}
	return errs
}

func files(items []corev1.DownwardAPIVolumeFile, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range items {
		errs = append(errs, file(items[i].Path, at.Index(i).Child("path"))...)
		errs = append(errs, mode(items[i].Mode, at.Index(i).Child("mode"))...)
		if (items[i].FieldRef == nil) == (items[i].ResourceFieldRef == nil) {
			errs = append(errs, field.Required(at.Index(i), "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

// file checks a path within a volume.
func file(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if path.IsAbs(name) || slices.Contains(strings.Split(name, "/"), "..") || strings.HasPrefix(name, "..") {
		return field.ErrorList{field.Invalid(at, name, "must be a relative path without '..'")}
	}
	return nil
}

func mode(bits *int32, at *field.Path) field.ErrorList {
	if bits == nil {
		return nil
	}
	return inRange(*bits, 0, 0o777, at)
}
