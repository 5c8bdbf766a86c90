"""One command, one file. Heavy imports happen inside the commands: `unmix --help` answers at once."""
