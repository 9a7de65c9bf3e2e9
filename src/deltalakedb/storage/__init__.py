"""Object stores: one seam for local disks, S3, GCS, Azure and memory."""
