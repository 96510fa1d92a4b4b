//! Clusters that are kept in the database, beside those of the configuration file.
//!
//! A name means one cluster at a time: its incarnation. What is done for a job is done only by those who know the
//! incarnation that the name has now, and it gets another one only while nothing is under way on the old.

use domain::{ClusterIdentity, ClusterName, Owner, Timestamp};
use serde_json::Value;
use sqlx::{PgConnection, postgres::PgListener};

use crate::{error::StoreError, store::Store};

const CLUSTERS: &str = "tao_slurm_clusters";

/// A cluster as it is stored. Whether its settings are any good is for others to say.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptCluster {
    pub name: ClusterName,
    pub settings: Value,
    /// Another one after every change.
    pub revision: i64,
    /// Another one when the name has come to mean another cluster.
    pub incarnation: i64,
    pub created_at: Timestamp,
    pub created_by: Owner,
    pub changed_at: Timestamp,
    pub changed_by: Owner,
}

/// Settings that have passed every check, and who sends them.
#[derive(Debug, Clone, Copy)]
pub struct NewCluster<'a> {
    pub name: &'a ClusterName,
    pub settings: &'a Value,
    pub identity: &'a ClusterIdentity,
    pub by: &'a Owner,
}

/// What became of a [`NewCluster`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterKept {
    Done {
        revision: i64,
        incarnation: i64,
    },
    /// The name is taken.
    Exists,
    /// There are as many as there may be.
    Full,
}

/// Which revision a change is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revision {
    Any,
    This(i64),
}

/// What became of a change, or of the wish to forget a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterChange {
    Done {
        revision: i64,
        incarnation: i64,
    },
    NoCluster,
    /// It is not at the revision that was meant any more.
    Changed {
        revision: i64,
    },
    /// Something is under way on it, which the change would cut off.
    InUse {
        work: ClusterWork,
        differs_in: Vec<&'static str>,
    },
}

/// What is under way on a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClusterWork {
    /// Jobs that have not ended.
    pub jobs: u64,
    /// Deleted jobs whose files are still being removed.
    pub removals: u64,
    /// Conversions of images that Slurm may have.
    pub conversions: u64,
}

impl ClusterWork {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Store {
    /// All of them, the oldest first.
    pub async fn kept_clusters(&self) -> Result<Vec<KeptCluster>, StoreError> {
        let rows = sqlx::query!(
            "-- clusters::kept_clusters
             select name, settings, revision, incarnation, created_at, created_by, changed_at, changed_by
             from clusters order by created_at, name"
        )
        .fetch_all(&self.pool)
        .await?;
        let kept = rows.into_iter().filter_map(|row| {
            Some(KeptCluster {
                // The schema lets no other name in.
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
        Ok(kept.collect())
    }

    /// Which there are, at which revision: whoever knows them all has nothing to read anew.
    pub async fn cluster_revisions(&self) -> Result<Vec<(String, i64)>, StoreError> {
        let rows = sqlx::query!(
            "-- clusters::cluster_revisions
             select name, revision from clusters order by created_at, name"
        )
        .fetch_all(&self.pool)
        .await?;
        Ok(rows.into_iter().map(|row| (row.name, row.revision)).collect())
    }

    /// Stores a new cluster, if there are fewer than `most`.
    pub async fn keep_cluster(&self, new: NewCluster<'_>, most: u32) -> Result<ClusterKept, StoreError> {
        let mut tx = self.pool.begin().await?;
        // One at a time, so that the count is right. Those who only look, and those who send jobs, do not wait.
        sqlx::query!(
            "-- clusters::keep_cluster lock
             lock table clusters in share row exclusive mode"
        )
        .execute(&mut *tx)
        .await?;
        let found = sqlx::query!(
            r#"-- clusters::keep_cluster count
               select count(*) as "all!", count(*) filter (where name = $1) as "same!" from clusters"#,
            new.name.as_str()
        )
        .fetch_one(&mut *tx)
        .await?;
        if found.same > 0 {
            return Ok(ClusterKept::Exists);
        }
        if found.all >= i64::from(most) {
            return Ok(ClusterKept::Full);
        }
        // What was said of an earlier cluster of this name is not said of this one.
        forget_sayings(&mut tx, new.name).await?;
        let row = sqlx::query!(
            "-- clusters::keep_cluster
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
        Ok(ClusterKept::Done { revision: row.revision, incarnation: row.incarnation })
    }

    /// Replaces the settings of a cluster. While something is under way on it, it has to stay the same cluster.
    pub async fn replace_cluster(
        &self,
        new: NewCluster<'_>,
        meant: Revision,
    ) -> Result<ClusterChange, StoreError> {
        let mut tx = self.pool.begin().await?;
        let row = match hold(&mut tx, new.name, meant).await? {
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
            forget_sayings(&mut tx, new.name).await?;
        }
        let row = sqlx::query!(
            "-- clusters::replace_cluster
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
        // The failures so far are those of the old settings.
        sqlx::query!(
            "-- clusters::replace_cluster polls
             update cluster_polls set failures = 0, error = null, auth_required = false, due_at = least(due_at, now())
             where cluster = $1",
            new.name.as_str(),
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok(ClusterChange::Done { revision: row.revision, incarnation: row.incarnation })
    }

    /// Forgets a cluster on which nothing is under way. Jobs that have ended on it stay.
    pub async fn forget_cluster(
        &self,
        name: &ClusterName,
        meant: Revision,
    ) -> Result<ClusterChange, StoreError> {
        let mut tx = self.pool.begin().await?;
        let row = match hold(&mut tx, name, meant).await? {
            Ok(row) => row,
            Err(refused) => return Ok(refused),
        };
        let work = work_on(&mut tx, name).await?;
        if !work.is_none() {
            return Ok(ClusterChange::InUse { work, differs_in: Vec::new() });
        }
        sqlx::query!(
            "-- clusters::forget_cluster
             delete from clusters where name = $1",
            name.as_str()
        )
        .execute(&mut *tx)
        .await?;
        forget_sayings(&mut tx, name).await?;
        tx.commit().await?;
        Ok(ClusterChange::Done { revision: row.revision, incarnation: row.incarnation })
    }

    /// Whether the name still means this cluster.
    pub async fn is_incarnation(&self, name: &ClusterName, incarnation: i64) -> Result<bool, StoreError> {
        let is = sqlx::query_scalar!(
            r#"-- clusters::is_incarnation
               select exists (select from clusters where name = $1 and incarnation = $2) as "is!""#,
            name.as_str(),
            incarnation,
        );
        Ok(is.fetch_one(&self.pool).await?)
    }

    /// Hears of clusters that were added, changed or removed.
    pub async fn listen_clusters(&self) -> Result<ClusterListener, StoreError> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.listen(CLUSTERS).await?;
        Ok(ClusterListener(listener))
    }
}

/// Hears of changes of the clusters that are kept.
#[derive(Debug)]
pub struct ClusterListener(PgListener);

impl ClusterListener {
    /// Waits until something may have changed: also when the connection was lost and made again.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        self.0.try_recv().await?;
        Ok(())
    }
}

/// Holds a kept cluster as it is until the transaction ends; false when the name means it no more. Others may hold it, too.
pub(crate) async fn hold_incarnation(
    connection: &mut PgConnection,
    name: &ClusterName,
    incarnation: i64,
) -> Result<bool, StoreError> {
    let found = sqlx::query_scalar!(
        "-- clusters::hold_incarnation
         select incarnation from clusters where name = $1 for share",
        name.as_str(),
    )
    .fetch_optional(connection)
    .await?;
    Ok(found == Some(incarnation))
}

struct Held {
    /// None when it cannot be read.
    identity: Option<ClusterIdentity>,
    revision: i64,
    incarnation: i64,
}

/// Takes a cluster for a change. Whoever sends a job to it waits until that is over, or has been waited for.
async fn hold(
    connection: &mut PgConnection,
    name: &ClusterName,
    meant: Revision,
) -> Result<Result<Held, ClusterChange>, StoreError> {
    let row = sqlx::query!(
        "-- clusters::hold
         select revision, incarnation, login, hosts, base_dir from clusters where name = $1 for update",
        name.as_str()
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(Err(ClusterChange::NoCluster)) };
    if meant != Revision::Any && meant != Revision::This(row.revision) {
        return Ok(Err(ClusterChange::Changed { revision: row.revision }));
    }
    let identity = row.login.parse().ok().zip(row.base_dir.parse().ok());
    let hosts = row.hosts;
    let identity = identity.map(|(user, base_dir)| ClusterIdentity { user, hosts, base_dir });
    Ok(Ok(Held { identity, revision: row.revision, incarnation: row.incarnation }))
}

async fn work_on(connection: &mut PgConnection, name: &ClusterName) -> Result<ClusterWork, StoreError> {
    let row = sqlx::query!(
        r#"-- clusters::work_on
           select (select count(*) from jobs where cluster = $1 and phase <> 'ended') as "jobs!",
                  (select count(*) from jobs where cluster = $1 and phase = 'ended' and desired_state = 'delete') as "removals!",
                  (select count(*) from image_conversions
                   where cluster = $1 and state not in ('wanted', 'ready', 'failed')) as "conversions!""#,
        name.as_str()
    )
    .fetch_one(connection)
    .await?;
    let count = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(ClusterWork {
        jobs: count(row.jobs),
        removals: count(row.removals),
        conversions: count(row.conversions),
    })
}

/// Removes what a cluster has said and what was said of it: the next one of its name begins with nothing.
async fn forget_sayings(connection: &mut PgConnection, name: &ClusterName) -> Result<(), StoreError> {
    sqlx::query!(
        "-- clusters::forget_sayings polls
         delete from cluster_polls where cluster = $1",
        name.as_str()
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "-- clusters::forget_sayings partitions
         delete from cluster_partitions where cluster = $1",
        name.as_str()
    )
    .execute(&mut *connection)
    .await?;
    sqlx::query!(
        "-- clusters::forget_sayings conversions
         delete from image_conversions where cluster = $1",
        name.as_str()
    )
    .execute(&mut *connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests;
