//! The pages that commands write.

pub mod tree;
