"""Everything is killed while captures run; nothing accepted may be lost or done twice."""
