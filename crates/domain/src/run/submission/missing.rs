//! What is said of a job whose inputs are not there.

use std::fmt::Write;

use slurm::RemotePath;

/// All paths are named as long as the sentence stays one that a person, a log and a dashboard can take.
const MOST_BYTES: usize = 8000;

/// The sentence that a job ends with.
pub(super) fn sentence(paths: &[RemotePath]) -> String {
    let mut text = match paths.len() {
        1 => "An input is not on the cluster, or may not be read there: ".to_owned(),
        count => format!("{count} inputs are not on the cluster, or may not be read there: "),
    };
    for (index, path) in paths.iter().enumerate() {
        if index > 0 && text.len() + path.as_str().len() > MOST_BYTES {
            let _ = write!(text, " and {} more", paths.len() - index);
            break;
        }
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(text, "{comma}{path}");
    }
    text.push_str(". Nothing was submitted; put the data there or mend the paths, and send the job again.");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_named() {
        let paths = ["/lustre/a b", "/lustre/c"].map(|path| path.parse().unwrap());
        assert!(sentence(&paths).starts_with(
            "2 inputs are not on the cluster, or may not be read there: /lustre/a b, /lustre/c. Nothing"
        ));
    }

    #[test]
    fn very_many_are_counted() {
        let paths: Vec<RemotePath> =
            (0..1000).map(|number| format!("/lustre/{number:0>100}").parse().unwrap()).collect();
        let text = sentence(&paths);
        assert!(text.len() < MOST_BYTES + 300 && text.contains(" and 9"), "{}", text.len());
    }
}
