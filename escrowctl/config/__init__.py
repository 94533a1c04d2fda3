"""The sources of settings: folders, the config file, profiles and keys; and how they combine."""
