//! What can go wrong between the service and its database.

/// A failure of the store. "Not found" is no failure: it is `None`.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The lease that gave the right to write has expired and may belong to somebody else: the result of the
    /// step is to be dropped.
    #[error("the lease on {what} was lost; its result is dropped")]
    LeaseLost { what: String },
    /// A stored value cannot be read back: the row was written by something else than this program.
    #[error("table {table}, column {column}, row {row} holds a value that cannot be read")]
    Corrupt { table: &'static str, column: &'static str, row: String },
    /// A value cannot be sealed or written as JSON.
    #[error("a value cannot be stored: {0}")]
    Unstorable(&'static str),
    #[error("the database failed")]
    Driver(#[from] sqlx::Error),
    /// Nobody waits for its answer any more.
    #[error("the database has not answered in time")]
    Late,
    #[error("the database's schema cannot be brought up to date")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// The schema is older or newer than this program.
    #[error(
        "the database's schema is at version {found:?}, this program needs {wanted}: run `tao-slurm migrate`"
    )]
    Schema { found: Option<i64>, wanted: i64 },
}

impl StoreError {
    /// Whether the database refused a value rather than failed: class 22 is bad data, 23 a broken constraint.
    pub(crate) fn is_about_the_data(&self) -> bool {
        let Self::Driver(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code.starts_with("22") || code.starts_with("23"))
    }

    /// Whether the database undid a statement in favour of another one: a deadlock, or two that cannot be put in order.
    /// Nothing of it has happened, and it may be made again at once.
    pub(crate) fn is_rolled_back(&self) -> bool {
        let Self::Driver(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code.starts_with("40"))
    }

    /// Whether the database could not be reached or would not serve: the same call may succeed later.
    pub fn is_unavailable(&self) -> bool {
        match self {
            Self::Driver(error) => match error {
                sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed => true,
                // Class 08: connection; 53: resources; 57: operator intervention; 40: rollback, to be retried; 25006: the
                // server only reads, since another one leads; 25P03: this process was stopped in a transaction; 55P03: a lock was
                // held for too long.
                sqlx::Error::Database(error) => error.code().is_some_and(|code| {
                    ["08", "53", "57", "40", "25006", "25P03", "55P03"]
                        .iter()
                        .any(|class| code.starts_with(class))
                }),
                _ => false,
            },
            Self::Schema { .. } | Self::Late => true,
            Self::LeaseLost { .. } | Self::Corrupt { .. } | Self::Unstorable(_) | Self::Migrate(_) => false,
        }
    }
}
