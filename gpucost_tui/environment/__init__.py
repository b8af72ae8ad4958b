"""What is really on this machine: devices, driver, host, disk, software (R8, R9)."""
