use std::time::{Duration, SystemTime};

use remote::{CheckImages, ImageFile, Superseded};

use crate::site::Site;

/// The beginning of a SquashFS file that says it is so long, and the rest of so many bytes.
fn squashfs(says: u64, is: usize) -> Vec<u8> {
    let mut bytes = vec![0; is];
    bytes[..4].copy_from_slice(b"hsqs");
    bytes[40..48].copy_from_slice(&says.to_le_bytes());
    bytes
}

fn check(site: &Site, names: &[&str]) -> Vec<ImageFile> {
    let paths = names.iter().map(|name| site.path(name)).collect();
    site.run(&CheckImages { paths, superseded: Vec::new(), jobs: Vec::new() })
}

#[test]
fn only_a_whole_image_is_one() {
    use ImageFile::{Absent, Broken, Whole};
    let site = Site::new();
    site.write("whole.sqsh", squashfs(100, 100));
    // mksquashfs fills the file up to a multiple of 4096.
    site.write("with padding.sqsh", squashfs(100, 4096));
    site.write("cut.sqsh", squashfs(101, 100));
    site.write("empty.sqsh", "");
    site.write("short.sqsh", "hsqs");
    site.write("text.sqsh", "this is no image at all, and long enough to hold a superblock\n");
    site.write("claims nothing.sqsh", squashfs(0, 100));
    site.write("claims too much.sqsh", squashfs(u64::MAX, 100));
    std::fs::create_dir(site.file("dir.sqsh")).unwrap();
    site.link("whole.sqsh", "link.sqsh");
    site.link("nowhere", "dangling.sqsh");
    let cases = [
        ("whole.sqsh", Whole),
        ("with padding.sqsh", Whole),
        ("cut.sqsh", Broken),
        ("empty.sqsh", Broken),
        ("short.sqsh", Broken),
        ("text.sqsh", Broken),
        ("claims nothing.sqsh", Broken),
        ("claims too much.sqsh", Broken),
        ("dir.sqsh", Broken),
        ("link.sqsh", Whole),
        ("dangling.sqsh", Absent),
        ("no/such/directory.sqsh", Absent),
    ];
    let names: Vec<&str> = cases.iter().map(|(name, _)| *name).collect();
    let expected: Vec<ImageFile> = cases.iter().map(|(_, file)| *file).collect();
    assert_eq!(check(&site, &names), expected);
    assert_eq!(check(&site, &[]), []);
}

#[test]
fn a_list_that_was_cut_is_no_answer() {
    let site = Site::new();
    let command =
        CheckImages { paths: vec![site.path("a"), site.path("b")], superseded: Vec::new(), jobs: Vec::new() };
    let raw = site.raw_cut(&command, 10);
    assert!(remote::RemoteCommand::parse(&command, &raw).is_err());
}

#[test]
fn a_damaged_file_is_removed_once_its_replacement_is_whole() {
    let site = Site::new();
    site.write("new.sqsh", squashfs(100, 100));
    site.write("cut.sqsh", squashfs(101, 100));
    for (name, written_at) in
        [("old.sqsh", 1000), ("without another.sqsh", 1000), ("written since.sqsh", 2001)]
    {
        site.write(name, squashfs(100, 100));
        let file = std::fs::File::options().write(true).open(site.file(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(written_at)).unwrap();
    }
    let file = |by, name: &str| Superseded { by, known_at: 2000, path: site.path(name) };
    let command = CheckImages {
        paths: ["cut.sqsh", "new.sqsh"].map(|name| site.path(name)).to_vec(),
        superseded: vec![
            file(0, "without another.sqsh"),
            file(1, "old.sqsh"),
            file(1, "written since.sqsh"),
            file(1, "nowhere.sqsh"),
        ],
        jobs: Vec::new(),
    };
    assert_eq!(site.run(&command), [ImageFile::Broken, ImageFile::Whole]);
    let left = ["old.sqsh", "without another.sqsh", "written since.sqsh"].map(|name| site.exists(name));
    assert_eq!(left, [false, true, true]);
}
