"""The HTTP service, over real connections to a really running server."""
