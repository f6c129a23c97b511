"""The two file formats: binary containers with a checksum per section, and YAML read strictly."""
