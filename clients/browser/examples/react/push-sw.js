import "pushsvc-browser/worker";
