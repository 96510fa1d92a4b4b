//! The patterns of texts, as regular expressions for every client (ECMA-262 without look-around). Images, login hosts and host
//! keys are too complex for a readable pattern and only must not be blank.

/// An absolute path: no segment is `.` or `..`, and at least one is not empty. Segments contain no control characters, `%`, `\` or
/// the given characters.
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

/// `domain::text::Word`: a network or an action.
pub(super) const WORD: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
/// `domain::text::Label`: a display text.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";
/// A label filter.
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
/// `domain::Mount`: no character that ends a mount in Pyxis's list or that Pyxis's shell expands.
pub(super) const MOUNT: &str = concat!(
    "^",
    path!(r",:\u0022\u0024\u0027\u0060"),
    "(?::",
    path!(r",:\u0022\u0024\u0027\u0060"),
    "(?::ro)?)?$"
);
/// A path, or a URI of a path on the shared file system.
pub(super) const INPUT: &str = concat!("^(?:lustre://|slurm://)?", path!(""), "$");
/// `domain::KeyName`.
pub(super) const KEY_NAME: &str = r"^[A-Za-z0-9_](?:\.?[A-Za-z0-9_-])*\.?$";
/// `slurm::MailAddress`.
pub(super) const EMAIL: &str = "^[A-Za-z0-9][A-Za-z0-9._+-]*@[A-Za-z0-9][A-Za-z0-9.-]*$";
/// `domain::SbatchExport`.
pub(super) const SBATCH_EXPORT: &str = "^(?:ALL|NIL)$";
/// The common spellings.
pub(super) const DURATION: &str =
    "^[0-9]{1,6} ?(?:ms|s|sec|m|min|h|hr)(?: ?[0-9]{1,6} ?(?:ms|s|sec|m|min|h|hr))*$";
pub(super) const HTTP: &str = r"^https?://\S+$";
/// The base64 of 24 to 64 bytes.
pub(super) const WEBHOOK_SECRET: &str = "^whsec_(?:[A-Za-z0-9+/]{4}){8,20}(?:(?:[A-Za-z0-9+/]{4})?(?:[A-Za-z0-9+/][AQgw]==)?|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$";
/// A registry's name, as in image names: a host, with a port or without.
pub(super) const MACHINE: &str = "^[A-Za-z0-9._-]+(?::[0-9]{1,5})?$";
/// `remote::NetrcWord`: printable, without spaces, quotes and backslashes; it does not begin with `#`.
pub(super) const LOGIN: &str = r"^[!$-&(-\[\]-_a-~][!#-&(-\[\]-_a-~]*$";
/// The same, without a `$` at the beginning, which Enroot would expand.
pub(super) const PASSWORD: &str = r"^[!%&(-\[\]-_a-~][!#-&(-\[\]-_a-~]*$";
