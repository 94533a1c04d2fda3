"""Where values come from: folders, the config file, profiles, keys, and how they combine."""
