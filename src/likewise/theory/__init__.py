"""Small functions for reading."""
