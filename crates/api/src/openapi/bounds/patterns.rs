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

/// One part of a relative path: not `.` or `..`.
macro_rules! file_part {
    () => {
        r"(?:\.{0,2}[A-Za-z0-9_-][A-Za-z0-9._-]*|\.{3}[A-Za-z0-9._-]*)"
    };
}

/// Numbers and ranges of tasks.
macro_rules! indices {
    () => {
        r"[0-9]{1,7}(?:-[0-9]{1,7}(?::[0-9]{1,7})?)?(?:,[0-9]{1,7}(?:-[0-9]{1,7}(?::[0-9]{1,7})?)?)*"
    };
}

/// One license: a name, perhaps a server, perhaps a count.
macro_rules! license {
    ($before:literal) => {
        concat!($before, r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:@[A-Za-z0-9_][A-Za-z0-9_.-]*)?(?::[1-9][0-9]{0,5})?")
    };
}

/// `domain::text::Word`: a network or an action.
pub(super) const WORD: &str = "^[A-Za-z0-9][A-Za-z0-9._-]*$";
/// `slurm::ComponentName`: a step or a service.
pub(super) const COMPONENT: &str = "^[a-z][a-z0-9_-]*$";
/// `domain::text::Label`: a display text.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001f\u007f-\u009f]+$";
/// A label filter: a key, a colon and a value.
pub(super) const LABEL: &str = r"^[^\u0000-\u001f\u007f-\u009f:]{1,500}:[^\u0000]{0,500}$";
/// What figures are split by: a field, or a label with its key.
pub(super) const GROUP: &str =
    r"^(?:status|cluster|partition|owner|rule|label:[^\u0000-\u001f\u007f-\u009f]{1,500})$";
/// Without control characters, and not blank.
pub(super) const ONE_LINE: &str =
    r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";
pub(super) const NOT_BLANK: &str = r"\S";
pub(super) const NOT_EMPTY: &str = ".";
/// `domain::ClusterName`.
pub(super) const CLUSTER: &str = "^[a-z0-9][a-z0-9._-]*$";
/// `slurm::UserName`.
pub(super) const USER: &str = "^[a-z_][a-z0-9_-]*$";
/// `slurm::Partition`, and `slurm::Account`.
pub(super) const PARTITION: &str = "^[A-Za-z0-9_][A-Za-z0-9_.+-]*$";
/// `slurm::PartitionList`.
pub(super) const PARTITIONS: &str =
    "^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}(?:,[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})*$";
/// `slurm::GresName`.
pub(super) const GRES_NAME: &str = "^(?:[0-9_][0-9_-]*)?[A-Za-z][A-Za-z0-9_-]*$";
/// `slurm::GresType`.
pub(super) const GRES_TYPE: &str = "^(?:[0-9_][0-9_.-]*)?[A-Za-z][A-Za-z0-9_.-]*$";
/// `slurm::Gres`.
pub(super) const GRES: &str = "^[0-9_]{0,30}[A-Za-z][A-Za-z0-9_-]{0,30}(?::(?:[0-9_][0-9_.-]{0,20})?[A-Za-z][A-Za-z0-9_.-]{0,30})?(?::[1-9][0-9]{0,5})?$";
/// `slurm::Memory`.
pub(super) const MEMORY: &str = "^[0-9]{1,9}[KMGTkmgt]?$";
/// `slurm::Memory`, not 0.
pub(super) const SOME_MEMORY: &str = "^[1-9][0-9]{0,8}[KMGTkmgt]?$";
/// `slurm::Reservation`.
pub(super) const RESERVATION: &str = "^[A-Za-z0-9_][A-Za-z0-9_.:+-]*(?:,[A-Za-z0-9_][A-Za-z0-9_.:+-]*)*$";
/// `slurm::Constraint`, but for brackets that do not match.
pub(super) const CONSTRAINT: &str = r"^[A-Za-z0-9_(\[][A-Za-z0-9_.:=/+&|*,()\[\]{}-]*$";
/// `slurm::NodeSet`, but for ranges and repetitions.
pub(super) const NODES: &str = r"^[A-Za-z0-9][A-Za-z0-9.,\[\]-]*$";
/// `slurm::Licenses`.
pub(super) const LICENSES: &str =
    concat!(license!("^"), "(?:(?:,", license!(""), r")*|(?:\|", license!(""), ")*)$");
/// `slurm::Switches`.
pub(super) const SWITCHES: &str = "^[1-9][0-9]{0,5}(?:@(?:[0-9]{1,10}-)?[0-9]{1,10}(?::[0-9]{1,10}){0,2})?$";
/// `slurm::Moment`, but for dates that do not exist.
pub(super) const MOMENT: &str = r"^(?:now\+[0-9]{1,6}(?:(?:second|minute|hour)s?)?|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?)?)$";
/// `slurm::OptionText`.
pub(super) const OPTION_TEXT: &str = r"^[^\u0000-\u001f\u007f-\u009f\u2028\u2029]+$";
/// `slurm::OptionName`.
pub(super) const OPTION_NAME: &str = "^[a-z][a-z0-9-]*$";
/// `slurm::GpuRequest`.
pub(super) const GPU_REQUEST: &str = "^(?:gres|gpus-per-node)$";
/// `domain::ContainerRuntime`.
pub(super) const RUNTIME: &str = "^(?:pyxis|apptainer)$";
/// `slurm::EnvKey`.
pub(super) const ENV_KEY: &str = "^[A-Za-z_][A-Za-z0-9_]*$";
/// The path of a page.
pub(super) const PAGE: &str = "^/[!-~]*$";
/// `slurm::RemotePath`.
pub(super) const PATH: &str = concat!("^", path!(""), "$");
/// A path that containers mount: it has none of the characters that a mount must not have.
pub(super) const MOUNTED: &str = concat!("^", path!(r",:\u0022\u0024\u0027\u0060"), "$");
/// A file of a job: a relative path without `.` and `..` as a part.
pub(super) const FILE: &str = concat!("^", file_part!(), "(?:/", file_part!(), ")*$");
/// A plugin of `srun --mpi`.
pub(super) const MPI_PLUGIN: &str = "^[a-z0-9_]+$";
/// `slurm::TaskSet`, but for the order and the size of its ranges.
pub(super) const INDICES: &str = concat!("^", indices!(), "$");
/// `domain::TaskSelection`.
pub(super) const TASKS: &str = concat!("^(?:pending|running|failed|canceled|", indices!(), ")$");
/// The mode of a file in octal.
pub(super) const MODE: &str = "^0?[0-7]{3}$";
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
