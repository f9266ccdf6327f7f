"""What a model demands beyond its family's override. Source: SGLang 0.5.23, ``arg_groups/model_hook.py``."""
