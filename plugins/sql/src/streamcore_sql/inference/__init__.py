"""A look at messages: which table would read them, and why one of them cannot be read."""
