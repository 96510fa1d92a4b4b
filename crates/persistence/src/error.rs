//! What can go wrong between the service and its database.

/// The result of a call of the store.
pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// A failure of the store. "Not found" is not a failure: it is `None`.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The lease has expired, and another process may have it: the result of the step is dropped.
    #[error("the lease on {what} was lost; its result is dropped")]
    LeaseLost { what: String },
    /// A stored value cannot be read: another program wrote the row, or its secrets were sealed with another key.
    #[error("table {table}, column {column}, row {row} holds a value that cannot be read")]
    Corrupt { table: &'static str, column: &'static str, row: String },
    /// A value cannot be sealed or written as JSON.
    #[error("{0} cannot be stored: it cannot be sealed or written as JSON")]
    Unstorable(&'static str),
    #[error("the database failed")]
    Driver(#[from] sqlx::Error),
    /// The caller stopped waiting.
    #[error("the database has not answered in time")]
    Late,
    #[error("the database schema cannot be brought up to date")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The schema and this program do not fit together.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Why the schema and this program do not fit together, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    #[error(
        "the database schema is at version {found}, and this program needs version {program}: run `tao-slurm migrate` of \
         this program"
    )]
    Older { found: i64, program: i64 },
    #[error(
        "the database schema is at version {found} and needs programs of schema version {minimum} or later, and this program \
         has version {program}: run a newer program; or go back: stop all newer processes, then run `tao-slurm migrate --to \
         {program}` of the newest program"
    )]
    Newer { found: i64, minimum: i64, program: i64 },
    #[error("`--to {target}` is not possible: this program knows the schema versions 1 to {program}")]
    NoSuchVersion { target: i64, program: i64 },
    #[error("the database schema is at version {found}, before {target}: `tao-slurm migrate` upgrades it")]
    NotReached { found: i64, target: i64 },
    #[error(
        "the database schema is at version {found}, and this program knows the way back from version {program} only: run \
         `tao-slurm migrate --to {target}` of the newest program"
    )]
    Unknown { found: i64, target: i64, program: i64 },
    #[error(
        "processes that need a newer schema than version {target} use the database: {}; stop them or install an older \
         program there, then run this command again", users.join(", ")
    )]
    InUse { target: i64, users: Vec<String> },
}

impl StoreError {
    /// Whether the database refused a value, rather than failed: class 22 is bad data, 23 a broken constraint.
    pub(crate) fn is_about_the_data(&self) -> bool {
        self.has_code(&["22", "23"])
    }

    /// Whether the database rolled a statement back in favor of another one: a deadlock or a serialization failure. The
    /// statement had no effect and can be retried at once.
    pub(crate) fn is_rolled_back(&self) -> bool {
        self.has_code(&["40"])
    }

    /// Whether the database was unreachable or refused to serve: the same call may succeed later.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Driver(
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed,
            )
            | Self::Schema(_)
            | Self::Late => true,
            // Class 08: connection; 53: resources; 57: operator intervention; 40: rollback; 25006: the server is a read-only
            // standby; 25P03: this process was stopped in a transaction; 55P03: a lock was held for too long.
            _ => self.has_code(&["08", "53", "57", "40", "25006", "25P03", "55P03"]),
        }
    }

    /// Whether the database returned an error code that begins with one of these.
    fn has_code(&self, beginnings: &[&str]) -> bool {
        let Self::Driver(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| beginnings.iter().any(|beginning| code.starts_with(beginning)))
    }
}
