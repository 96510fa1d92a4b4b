//! The program that converts an image of a registry into a SquashFS file. Its words are the image as `enroot import` reads it, the
//! file to create, and the parent of its temporary directory.

/// The text of the program, for bash.
pub const CONVERSION: &str = concat!(include_str!("../programs/whole_image.sh"), include_str!("convert.sh"));
