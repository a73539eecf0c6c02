"""The APNs sandbox: Apple's push service and iPhones."""
