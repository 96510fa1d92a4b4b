//! How a cluster treats images, retries and batch scripts, from what was written.

use std::str::FromStr;

use domain::{BatchSettings, ImagePolicy, ImageSettings, RetrySettings, SbatchExport};
use slurm::RemotePath;

use super::{cluster::Place, cluster_settings::ClusterSettings};

/// Slurm's own bound on `--signal`'s time (sbatch(1)).
const MOST_WARNING_SECONDS: u32 = 65_535;

pub(super) fn images(
    settings: &ClusterSettings,
    base_dir: &RemotePath,
    place: &mut Place<'_>,
) -> Option<ImageSettings> {
    let packaged =
        ImageSettings::packaged(base_dir).map_err(|error| place.add("sqsh_cache_dir", error)).ok()?;
    let default = packaged.policy;
    let policy = ImagePolicy {
        use_sqsh: settings.use_sqsh.unwrap_or(default.use_sqsh),
        require_sqsh: settings.require_sqsh.unwrap_or(default.require_sqsh),
        force_reconvert_latest: settings.force_reconvert_latest.unwrap_or(default.force_reconvert_latest),
    };
    if policy.require_sqsh && !policy.use_sqsh {
        place.add("require_sqsh", "requires what use_sqsh switches off; set one of them otherwise");
    }
    Some(ImageSettings {
        policy,
        cache_dir: parsed(place, "sqsh_cache_dir", settings.sqsh_cache_dir.as_ref(), packaged.cache_dir),
        conversion_partition: parsed(
            place,
            "conversion_partition",
            settings.conversion_partition.as_ref(),
            packaged.conversion_partition,
        ),
        conversion_minutes: within(
            place,
            "conversion_minutes",
            settings.conversion_minutes.unwrap_or(packaged.conversion_minutes),
            1,
            24 * 60,
        ),
        conversion_memory_gb: within(
            place,
            "conversion_memory_gb",
            settings.conversion_memory_gb.unwrap_or(packaged.conversion_memory_gb),
            1,
            4096,
        ),
        temp_dir: settings.enroot_temp_dir.as_ref().and_then(|text| place.parse("enroot_temp_dir", text)),
    })
}

pub(super) fn retries(settings: &ClusterSettings, place: &mut Place<'_>) -> RetrySettings {
    let packaged = RetrySettings::default();
    RetrySettings {
        max_retries: within(
            place,
            "max_retries",
            settings.max_retries.unwrap_or(packaged.max_retries),
            0,
            100,
        ),
        use_requeue: settings.use_requeue.unwrap_or(packaged.use_requeue),
        max_requeues: within(
            place,
            "max_requeues",
            settings.max_requeues.unwrap_or(packaged.max_requeues),
            0,
            1000,
        ),
        node_exclusion_hours: within(
            place,
            "node_exclusion_hours",
            settings.node_exclusion_hours.unwrap_or(packaged.node_exclusion_hours),
            0,
            24 * 365,
        ),
        cancel_unknown_jobs: settings.cancel_unknown_jobs.unwrap_or(packaged.cancel_unknown_jobs),
    }
}

pub(super) fn batch(settings: &ClusterSettings, place: &mut Place<'_>) -> BatchSettings {
    let packaged = BatchSettings::default();
    let sbatch_export = match settings.sbatch_export.as_deref().map(SbatchExport::from_str) {
        None => packaged.sbatch_export,
        Some(Ok(export)) => export,
        Some(Err(_)) => {
            place.add("sbatch_export", "must be \"ALL\" or \"NIL\"");
            packaged.sbatch_export
        }
    };
    BatchSettings {
        mail_user: settings.mail_user.as_ref().and_then(|text| place.parse("mail_user", text)),
        warning_seconds: within(
            place,
            "warning_seconds",
            settings.warning_seconds.unwrap_or(packaged.warning_seconds),
            0,
            MOST_WARNING_SECONDS,
        ),
        sbatch_export,
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(
    place: &mut Place<'_>,
    key: &str,
    text: Option<&String>,
    default: T,
) -> T {
    text.and_then(|text| place.parse(key, text)).unwrap_or(default)
}

fn within(place: &mut Place<'_>, key: &str, value: u32, least: u32, most: u32) -> u32 {
    if !(least..=most).contains(&value) {
        place.add(key, format_args!("must be from {least} to {most}"));
    }
    value
}
