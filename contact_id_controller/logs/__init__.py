"""What any robot measured, as arrays with names and units, read from any kind of file."""
