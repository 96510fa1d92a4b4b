//! The forms of texts, in the words of regular expressions that every client knows (ECMA-262 without look-around). What a
//! regular expression cannot say in a line that a person reads (images, login hosts, host keys) only has to be something.

/// An absolute path: no part is `.` or `..`, and one of them is something. None has a control character, `%`, `\` or one
/// of the characters that are given.
macro_rules! path {
    ($not:literal) => {
        concat!(
            r"(?:/+(?:\.{0,2}[^./%\\\u0000-\u001f\u007f-\u009f",
            $not,
            r"][^/%\\\u0000-\u001f\u007f-\u009f",
            $not,
            r"]*|\.{3}[^/%\\\u0000-\u001f\u007f-\u009f",
            $not,
            r"]*))+/*"
        )
    };
}

/// `domain::text::Word`: a network, an action.
pub(super) const WORD: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
/// `domain::text::Label`: a text for people.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";
/// A label to look for.
pub(super) const LABEL: &str = ":";
pub(super) const NOT_BLANK: &str = r"\S";
/// `domain::ClusterName`.
pub(super) const CLUSTER: &str = "^[a-z0-9][a-z0-9._-]*$";
/// `slurm::UserName`.
pub(super) const USER: &str = "^[a-z_][a-z0-9_-]*$";
/// `slurm::Partition`, and `slurm::Account`.
pub(super) const PARTITION: &str = "^[A-Za-z0-9_][A-Za-z0-9_.+-]*$";
/// `slurm::PartitionList`.
pub(super) const PARTITIONS: &str =
    "^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}(?:,[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})*$";
/// `slurm::EnvKey`.
pub(super) const ENV_KEY: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// `slurm::RemotePath`.
pub(super) const PATH: &str = concat!("^", path!(""), "$");
/// `domain::Mount`.
pub(super) const MOUNT: &str = concat!("^", path!(",:"), "(?::", path!(",:"), "(?::ro)?)?$");
/// A path, or a URI of one on the shared file system.
pub(super) const INPUT: &str = concat!("^(?:lustre://|slurm://)?", path!(""), "$");
/// `domain::KeyName`.
pub(super) const KEY_NAME: &str = r"^[A-Za-z0-9_](?:\.?[A-Za-z0-9_-])*\.?$";
/// `slurm::MailAddress`.
pub(super) const EMAIL: &str = "^[A-Za-z0-9][A-Za-z0-9._+-]*@[A-Za-z0-9][A-Za-z0-9.-]*$";
/// `domain::SbatchExport`.
pub(super) const SBATCH_EXPORT: &str = "^(?:ALL|NIL)$";
/// As far as people write them.
pub(super) const DURATION: &str =
    "^[0-9]{1,6} ?(?:ms|s|sec|m|min|h|hr)(?: ?[0-9]{1,6} ?(?:ms|s|sec|m|min|h|hr))*$";
pub(super) const HTTP: &str = r"^https?://\S+$";
/// The base64 of 24 to 64 bytes.
pub(super) const WEBHOOK_SECRET: &str = "^whsec_(?:[A-Za-z0-9+/]{4}){8,20}(?:(?:[A-Za-z0-9+/]{4})?(?:[A-Za-z0-9+/][AQgw]==)?|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$";
/// The name of a registry, as it stands in front of images.
pub(super) const MACHINE: &str = "^[A-Za-z0-9._:-]+$";
/// `remote::NetrcWord`: printable, without spaces, quotes and backslashes, and no comment.
pub(super) const LOGIN: &str = r"^[!$-&(-\[\]-_a-~][!#-&(-\[\]-_a-~]*$";
/// The same; enroot would evaluate a `$` at its beginning.
pub(super) const PASSWORD: &str = r"^[!%&(-\[\]-_a-~][!#-&(-\[\]-_a-~]*$";
