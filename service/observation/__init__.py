"""What the service says about itself: metrics, traces."""
