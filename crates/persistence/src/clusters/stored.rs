//! Clusters that are stored in the database, in addition to those of the configuration file.
//!
//! A name means one cluster at a time, its incarnation. A process works for a job only if it knows the current incarnation.
//! A name gets a new incarnation only while no work is under way on the old one.

use domain::{ClusterIdentity, ClusterName, Owner, Timestamp};
use serde_json::Value;
use sqlx::{PgConnection, postgres::PgListener};

use crate::{
    error::Result,
    listen::listen,
    store::{Call, Store},
    values::count,
};

const CLUSTERS: &str = "tao_slurm_clusters";

/// A cluster as it is stored. The settings are not checked here.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredCluster {
    pub name: ClusterName,
    pub settings: Value,
    /// Changes with every change of the row.
    pub revision: i64,
    /// Changes when the name means another cluster.
    pub incarnation: i64,
    pub created_at: Timestamp,
    pub created_by: Owner,
    pub changed_at: Timestamp,
    pub changed_by: Owner,
}

/// Settings that have passed every check, and their sender.
#[derive(Debug, Clone, Copy)]
pub struct NewCluster<'a> {
    pub name: &'a ClusterName,
    pub settings: &'a Value,
    pub identity: &'a ClusterIdentity,
    pub by: &'a Owner,
}

/// The result of adding a [`NewCluster`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterAdded {
    Done {
        revision: i64,
        incarnation: i64,
    },
    /// The name is taken.
    Exists,
    /// The maximum number of clusters is stored.
    Full,
}

/// The revision that a change expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    Any,
    This(i64),
}

/// The result of changing or deleting a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterChange {
    Done {
        revision: i64,
        incarnation: i64,
    },
    NoCluster,
    /// It has another revision than the change expects.
    Changed {
        revision: i64,
    },
    /// Work is under way on it, which the change would interrupt.
    InUse {
        work: ClusterWork,
        differs_in: Vec<&'static str>,
    },
}

/// The work that is under way on a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterWork {
    /// Jobs that have not ended.
    pub jobs: u64,
    /// Deleted jobs whose files are still being removed.
    pub removals: u64,
}

impl ClusterWork {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Store {
    /// All stored clusters, oldest first.
    pub async fn stored_clusters(&self) -> Result<Vec<StoredCluster>> {
        let rows = sqlx::query!(
            "-- clusters::stored::stored_clusters
             select name, settings, revision, incarnation, created_at, created_by, changed_at, changed_by
             from clusters order by created_at, name"
        )
        .fetch_all(&self.pool)
        .await?;
        let clusters = rows.into_iter().filter_map(|row| {
            Some(StoredCluster {
                // The schema allows no other name.
                name: row.name.parse().ok()?,
                settings: row.settings,
                revision: row.revision,
                incarnation: row.incarnation,
                created_at: row.created_at,
                created_by: Owner::new(row.created_by),
                changed_at: row.changed_at,
                changed_by: Owner::new(row.changed_by),
            })
        });
        Ok(clusters.collect())
    }

    /// The names and revisions of all stored clusters: a reader that knows them all is up to date.
    pub async fn cluster_revisions(&self) -> Result<Vec<(String, i64)>> {
        let rows = sqlx::query!(
            "-- clusters::stored::cluster_revisions
             select name, revision from clusters order by created_at, name"
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|row| (row.name, row.revision)).collect())
    }

    /// Stores a new cluster, if there are fewer than `most`.
    pub async fn add_cluster(&self, new: NewCluster<'_>, most: u32) -> Result<ClusterAdded> {
        let mut tx = self.begin().await?;
        // One at a time, so that the count is right. Readers and new jobs do not wait.
        sqlx::query!(
            "-- clusters::stored::add_cluster lock
             lock table clusters in share row exclusive mode"
        )
        .execute(&mut *tx)
        .await?;
        let found = sqlx::query!(
            r#"-- clusters::stored::add_cluster count
               select count(*) as "all!", count(*) filter (where name = $1) as "same!" from clusters"#,
            new.name.as_str()
        )
        .fetch_one(&mut *tx)
        .await?;
        if found.same > 0 {
            return Ok(ClusterAdded::Exists);
        }
        if found.all >= i64::from(most) {
            return Ok(ClusterAdded::Full);
        }
        // Observations of an earlier cluster with this name do not apply.
        delete_observations(&mut tx, new.name).await?;
        let row = sqlx::query!(
            "-- clusters::stored::add_cluster
             insert into clusters (name, settings, login, hosts, base_dir, created_by, changed_by)
             values ($1, $2, $3, $4, $5, $6, $6)
             returning revision, incarnation",
            new.name.as_str(),
            new.settings,
            new.identity.user.as_str(),
            &new.identity.hosts,
            new.identity.base_dir.as_str(),
            new.by.as_str(),
        )
        .fetch_one(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(ClusterAdded::Done { revision: row.revision, incarnation: row.incarnation })
    }

    /// Replaces the settings of a cluster. While work is under way on it, it has to stay the same cluster.
    pub async fn replace_cluster(&self, new: NewCluster<'_>, expected: Revision) -> Result<ClusterChange> {
        let mut tx = self.begin().await?;
        let row = match hold(&mut tx, new.name, expected).await? {
            Ok(row) => row,
            Err(refused) => return Ok(refused),
        };
        let differs_in =
            row.identity.map_or_else(|| vec!["identity"], |known| known.differs_from(new.identity));
        if !differs_in.is_empty() {
            let work = work_on(&mut tx, new.name).await?;
            if !work.is_none() {
                return Ok(ClusterChange::InUse { work, differs_in });
            }
            delete_observations(&mut tx, new.name).await?;
        }
        let row = sqlx::query!(
            "-- clusters::stored::replace_cluster
             update clusters
             set settings = $2, login = $3, hosts = $4, base_dir = $5, changed_by = $6, changed_at = now(),
                 incarnation = case when $7 then nextval('cluster_revisions') else incarnation end
             where name = $1
             returning revision, incarnation",
            new.name.as_str(),
            new.settings,
            new.identity.user.as_str(),
            &new.identity.hosts,
            new.identity.base_dir.as_str(),
            new.by.as_str(),
            !differs_in.is_empty(),
        )
        .fetch_one(&mut *tx)
        .await?;
        // The failures so far belong to the old settings.
        sqlx::query!(
            "-- clusters::stored::replace_cluster polls
             update cluster_polls set failures = 0, error = null, auth_required = false, due_at = least(due_at, now())
             where cluster = $1",
            new.name.as_str(),
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(ClusterChange::Done { revision: row.revision, incarnation: row.incarnation })
    }

    /// Deletes a cluster without work. Jobs that have ended on it stay.
    pub async fn delete_cluster(&self, name: &ClusterName, expected: Revision) -> Result<ClusterChange> {
        let mut tx = self.begin().await?;
        let row = match hold(&mut tx, name, expected).await? {
            Ok(row) => row,
            Err(refused) => return Ok(refused),
        };
        let work = work_on(&mut tx, name).await?;
        if !work.is_none() {
            return Ok(ClusterChange::InUse { work, differs_in: Vec::new() });
        }
        sqlx::query!(
            "-- clusters::stored::delete_cluster
             delete from clusters where name = $1",
            name.as_str()
        )
        .execute(&mut *tx)
        .await?;
        delete_observations(&mut tx, name).await?;
        tx.commit().await?;
        Ok(ClusterChange::Done { revision: row.revision, incarnation: row.incarnation })
    }

    pub async fn listen_clusters(&self) -> Result<ClusterListener> {
        Ok(ClusterListener(listen(self, CLUSTERS).await?))
    }
}

/// Which cluster a name means.
pub trait Incarnations {
    /// Whether the name still means this cluster.
    fn is_incarnation(&self, cluster: &ClusterName, incarnation: i64) -> impl Call<bool>;
}

impl Incarnations for Store {
    async fn is_incarnation(&self, cluster: &ClusterName, incarnation: i64) -> Result<bool> {
        let is = sqlx::query_scalar!(
            r#"-- clusters::stored::is_incarnation
               select exists (select from clusters where name = $1 and incarnation = $2) as "is!""#,
            cluster.as_str(),
            incarnation,
        );
        Ok(is.fetch_one(&self.pool).await?)
    }
}

/// Reports that stored clusters were added, changed or deleted.
#[derive(Debug)]
pub struct ClusterListener(PgListener);

impl ClusterListener {
    /// Waits until a cluster may have changed; also returns when the connection was lost and restored.
    pub async fn next(&mut self) -> Result<()> {
        self.0.try_recv().await?;
        Ok(())
    }
}

/// Locks a stored cluster against changes until the transaction ends; false when the name means another cluster. Several
/// transactions may hold this lock.
pub(crate) async fn hold_incarnation(
    connection: &mut PgConnection,
    name: &ClusterName,
    incarnation: i64,
) -> Result<bool> {
    let found = sqlx::query_scalar!(
        "-- clusters::stored::hold_incarnation
         select incarnation from clusters where name = $1 for share",
        name.as_str(),
    )
    .fetch_optional(connection)
    .await?;
    Ok(found == Some(incarnation))
}

struct Held {
    /// `None` when it cannot be read.
    identity: Option<ClusterIdentity>,
    revision: i64,
    incarnation: i64,
}

/// Locks a cluster for a change. New jobs for it wait for the change, and the change waits for jobs that came earlier.
async fn hold(
    connection: &mut PgConnection,
    name: &ClusterName,
    expected: Revision,
) -> Result<Result<Held, ClusterChange>> {
    let row = sqlx::query!(
        "-- clusters::stored::hold
         select revision, incarnation, login, hosts, base_dir from clusters where name = $1 for update",
        name.as_str()
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(Err(ClusterChange::NoCluster)) };
    if expected != Revision::Any && expected != Revision::This(row.revision) {
        return Ok(Err(ClusterChange::Changed { revision: row.revision }));
    }
    let identity = row.login.parse().ok().zip(row.base_dir.parse().ok());
    let hosts = row.hosts;
    let identity = identity.map(|(user, base_dir)| ClusterIdentity { user, hosts, base_dir });
    Ok(Ok(Held { identity, revision: row.revision, incarnation: row.incarnation }))
}

async fn work_on(connection: &mut PgConnection, name: &ClusterName) -> Result<ClusterWork> {
    let row = sqlx::query!(
        r#"-- clusters::stored::work_on
           select (select count(*) from jobs where cluster = $1 and phase <> 'ended') as "jobs!",
                  (select count(*) from jobs where cluster = $1 and phase = 'ended' and desired_state = 'delete') as "removals!""#,
        name.as_str()
    )
    .fetch_one(connection)
    .await?;
    Ok(ClusterWork { jobs: count(row.jobs), removals: count(row.removals) })
}

/// Deletes all observations of a cluster: the next one with this name starts without any.
async fn delete_observations(connection: &mut PgConnection, name: &ClusterName) -> Result<()> {
    sqlx::query!(
        "-- clusters::stored::delete_observations
         with polls as (delete from cluster_polls where cluster = $1),
              partitions as (delete from cluster_partitions where cluster = $1),
              budget as (delete from rpc_budgets where cluster = $1)
         delete from cached_images where cluster = $1",
        name.as_str()
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
