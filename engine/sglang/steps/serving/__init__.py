"""What the serving surface checks before and after everything else."""
