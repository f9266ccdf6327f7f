"""The runners: one readable file each, from choosing sizes to replay."""
