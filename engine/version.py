"""The version of graphgate, in one place."""

VERSION = "0.1.0"
