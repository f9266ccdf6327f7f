"""Kubernetes admission: an AdmissionReview in, allowed or denied with the reason out. Nothing is kept or changed."""
