package kubelet

import "time"

// MinGracePeriod is what kubelet leaves a container between the stop signal and SIGKILL after a preStop hook that took
// the whole grace period (kubelet, minimumGracePeriodInSeconds).
const MinGracePeriod = 2 * time.Second
