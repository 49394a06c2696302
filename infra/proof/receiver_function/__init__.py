"""The code of the receiver's function. The folder is its bundle."""
