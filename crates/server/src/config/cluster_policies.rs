//! How a cluster treats images, retries and batch scripts, from what was written.

use std::str::FromStr;

use domain::{BatchSettings, ImagePolicy, ImageSettings, RetrySettings, SbatchExport};
use slurm::RemotePath;

use super::{
    cluster_settings::ClusterSettings,
    faults::{Faults, OUT_OF_RANGE},
};

/// Slurm's own bound on `--signal`'s time (sbatch(1)).
const MOST_WARNING_SECONDS: u32 = 65_535;

pub(super) fn images(
    settings: &ClusterSettings,
    base_dir: &RemotePath,
    faults: &mut Faults,
) -> Option<ImageSettings> {
    let packaged =
        ImageSettings::packaged(base_dir).map_err(|error| faults.add("sqsh_cache_dir", error)).ok()?;
    let default = packaged.policy;
    let policy = ImagePolicy {
        use_sqsh: settings.use_sqsh.unwrap_or(default.use_sqsh),
        require_sqsh: settings.require_sqsh.unwrap_or(default.require_sqsh),
        force_reconvert_latest: settings.force_reconvert_latest.unwrap_or(default.force_reconvert_latest),
    };
    if policy.require_sqsh && !policy.use_sqsh {
        faults.add_as(
            "require_sqsh",
            "contradiction",
            "requires what use_sqsh switches off; set one of them otherwise",
        );
    }
    Some(ImageSettings {
        policy,
        cache_dir: parsed(faults, "sqsh_cache_dir", settings.sqsh_cache_dir.as_ref(), packaged.cache_dir),
        conversion_partition: parsed(
            faults,
            "conversion_partition",
            settings.conversion_partition.as_ref(),
            packaged.conversion_partition,
        ),
        conversion_minutes: within(
            faults,
            "conversion_minutes",
            settings.conversion_minutes.unwrap_or(packaged.conversion_minutes),
            1,
            24 * 60,
        ),
        conversion_memory_gb: within(
            faults,
            "conversion_memory_gb",
            settings.conversion_memory_gb.unwrap_or(packaged.conversion_memory_gb),
            1,
            4096,
        ),
        temp_dir: settings.enroot_temp_dir.as_ref().and_then(|text| faults.parse("enroot_temp_dir", text)),
    })
}

pub(super) fn retries(settings: &ClusterSettings, faults: &mut Faults) -> RetrySettings {
    let packaged = RetrySettings::default();
    RetrySettings {
        max_retries: within(
            faults,
            "max_retries",
            settings.max_retries.unwrap_or(packaged.max_retries),
            0,
            100,
        ),
        use_requeue: settings.use_requeue.unwrap_or(packaged.use_requeue),
        max_requeues: within(
            faults,
            "max_requeues",
            settings.max_requeues.unwrap_or(packaged.max_requeues),
            0,
            1000,
        ),
        node_exclusion_hours: within(
            faults,
            "node_exclusion_hours",
            settings.node_exclusion_hours.unwrap_or(packaged.node_exclusion_hours),
            0,
            24 * 365,
        ),
        cancel_unknown_jobs: settings.cancel_unknown_jobs.unwrap_or(packaged.cancel_unknown_jobs),
    }
}

pub(super) fn batch(settings: &ClusterSettings, faults: &mut Faults) -> BatchSettings {
    let packaged = BatchSettings::default();
    let sbatch_export = match settings.sbatch_export.as_deref().map(SbatchExport::from_str) {
        None => packaged.sbatch_export,
        Some(Ok(export)) => export,
        Some(Err(_)) => {
            faults.add("sbatch_export", "must be \"ALL\" or \"NIL\"");
            packaged.sbatch_export
        }
    };
    BatchSettings {
        mail_user: settings.mail_user.as_ref().and_then(|text| faults.parse("mail_user", text)),
        warning_seconds: within(
            faults,
            "warning_seconds",
            settings.warning_seconds.unwrap_or(packaged.warning_seconds),
            0,
            MOST_WARNING_SECONDS,
        ),
        sbatch_export,
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(
    faults: &mut Faults,
    key: &str,
    text: Option<&String>,
    default: T,
) -> T {
    text.and_then(|text| faults.parse(key, text)).unwrap_or(default)
}

fn within(faults: &mut Faults, key: &str, value: u32, least: u32, most: u32) -> u32 {
    if !(least..=most).contains(&value) {
        faults.add_as(key, OUT_OF_RANGE, format_args!("must be from {least} to {most}"));
    }
    value
}
