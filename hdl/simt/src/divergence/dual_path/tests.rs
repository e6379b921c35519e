//! The dual-path unit from its ports.
