//! Submitting: what a program that was ended in the middle of it leaves behind.

use std::{fs, time::Duration};

use remote::{How, SubmitBatch};

use crate::{
    site::Site,
    submit_batch::{entry, one, submitted},
};

/// How many directories for unfinished files there are in a directory; none if it does not exist.
pub(crate) fn stages(site: &Site, dir: &str) -> usize {
    let Ok(entries) = fs::read_dir(site.file(dir)) else { return 0 };
    entries
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".stage."))
        .count()
}

fn abandoned(site: &Site, dir: &str, hours: u64) {
    site.write(&format!("{dir}/env"), "SECRET=1");
    let file = fs::File::open(site.file(dir)).unwrap();
    let now = file.metadata().unwrap().modified().unwrap();
    file.set_modified(now - Duration::from_hours(hours)).unwrap();
}

#[test]
fn what_was_abandoned_a_day_ago_is_removed_from_every_directory_of_the_batch() {
    let site = Site::new();
    for dir in ["env", "sbatch", "elsewhere"] {
        abandoned(&site, &format!("{dir}/.stage.old"), 25);
        abandoned(&site, &format!("{dir}/.stage.young"), 23);
        abandoned(&site, &format!("{dir}/not.stage.old"), 25);
    }
    assert_eq!(one(&site, entry(&site, "a")), submitted(101, How::New));
    for dir in ["env", "sbatch"] {
        assert!(!site.exists(&format!("{dir}/.stage.old")));
        assert!(site.exists(&format!("{dir}/.stage.young/env")), "it may be another call's");
        assert!(site.exists(&format!("{dir}/not.stage.old/env")));
    }
    assert!(site.exists("elsewhere/.stage.old/env"));
}

#[test]
fn a_program_that_is_told_to_end_takes_its_unfinished_files_away() {
    let site = Site::new();
    site.program(
        "tar",
        "/usr/bin/tar \"$@\"\n\
         ls -d \"$SITE\"/env/.stage.*/a >\"$SITE/seen\"\n\
         read -r _ _ _ main _ <\"/proc/$PPID/stat\"; kill -TERM \"$main\"",
    );
    let raw = site.raw(&SubmitBatch::new(vec![entry(&site, "a")]));
    assert_ne!(raw.exit_code, 0);
    assert!(site.read("seen").contains(".stage."), "there was something to take away");
    assert_eq!((stages(&site, "env"), stages(&site, "sbatch"), site.calls("sbatch")), (0, 0, 0));
}

#[test]
fn a_batch_whose_caller_is_gone_is_submitted_to_its_end() {
    let site = Site::new();
    let keys = ["a", "b", "c", "d", "e", "f"];
    site.unheard(&SubmitBatch::new(keys.map(|key| entry(&site, key)).to_vec()));
    let kept = keys.map(|key| site.exists(&format!("state/{key}/slurm_id")));
    assert_eq!((kept, site.calls("sbatch")), ([true; 6], 6));
}
