//! The program that converts an image of a registry into a SquashFS file.

use slurm::RemotePath;

use super::{ScriptError, quoted};

/// The program, which reads its words as `$1` and so on.
const PROGRAM: &str = concat!(include_str!("../programs/whole_image.sh"), include_str!("convert.sh"));

/// The text of the program, for bash. `uri` is the image as `enroot import` reads it, `target` the file to create, and `temp_root` the
/// parent of its temporary directory.
pub fn conversion(uri: &str, target: &RemotePath, temp_root: &RemotePath) -> Result<String, ScriptError> {
    let words = [("the image", uri), ("a path", target.as_str()), ("a path", temp_root.as_str())];
    let words: Vec<String> =
        words.into_iter().map(|(what, word)| quoted(what, word)).collect::<Result<_, _>>()?;
    Ok(format!("set -- {}\n{PROGRAM}", words.join(" ")))
}
