use std::time::{Duration, SystemTime};

use remote::Checkpoints;

use crate::site::Site;

/// Writes files, each a minute younger than the one before it.
fn write_in_order(site: &Site, names: &[&str]) {
    let mut time = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
    for name in names {
        site.write(name, "x");
        time += Duration::from_mins(1);
        std::fs::File::options().write(true).open(site.file(name)).unwrap().set_modified(time).unwrap();
    }
}

fn newest(site: &Site, dir: &str) -> Option<String> {
    let found = site.run(&Checkpoints { jobs: vec![(uuid::Uuid::nil(), site.path(dir))] });
    let root = format!("{}/", site.path(dir));
    found[0].as_ref().map(|path| path.as_str().strip_prefix(&root).unwrap().to_owned())
}

#[test]
fn the_newest_of_those_that_tao_takes_for_checkpoints_is_found() {
    let site = Site::new();
    write_in_order(
        &site,
        &[
            "r/train/model_epoch_001.pth",
            "r/last.ckpt",
            "r/train/a b/epoch_3.pth",
            "r/train/other.pth",
            "r/train/deep.ckpt",
            "r/notes.txt",
            "r/ptm/model.pth",
            "r/inputs/model.pth",
        ],
    );
    assert_eq!(newest(&site, "r").as_deref(), Some("train/a b/epoch_3.pth"));
    site.remove("r/train/a b/epoch_3.pth");
    assert_eq!(newest(&site, "r").as_deref(), Some("last.ckpt"));
}

#[test]
fn an_empty_file_is_a_checkpoint_that_was_never_written() {
    let site = Site::new();
    write_in_order(&site, &["r/train/model_epoch_001.pth"]);
    site.write("r/train/model_epoch_002.pth", "");
    assert_eq!(newest(&site, "r").as_deref(), Some("train/model_epoch_001.pth"));
}

#[test]
fn where_there_is_none_there_is_none() {
    let site = Site::new();
    site.write("r/train/status.json", "{}");
    assert_eq!(newest(&site, "r"), None);
    assert_eq!(newest(&site, "missing"), None);
}
