//! Image references, and other texts that have a type to validate them.
#![no_main]

use domain::ImageRef;
use libfuzzer_sys::fuzz_target;
use slurm::{RemotePath, SlurmState, TimeLimit, WallTime, node_list};

fuzz_target!(|text: &str| {
    if let Ok(image) = text.parse::<ImageRef>() {
        // The text for Pyxis must parse as the same image.
        assert_eq!(image.pyxis().parse::<ImageRef>().map(|again| again.pyxis()), Ok(image.pyxis()));
        for rendered in [image.pyxis(), image.enroot(), image.cache_file_name()] {
            assert!(!rendered.starts_with('-'), "{rendered:?} would be an option");
            assert!(!rendered.contains(char::is_control), "{rendered:?} would be two lines");
        }
        assert!(!image.cache_file_name().contains('/'));
    }
    if let Ok(path) = text.parse::<RemotePath>() {
        assert!(path.as_str().starts_with('/') && !path.as_str().contains("/../"));
    }
    drop((text.parse::<WallTime>(), text.parse::<TimeLimit>(), text.parse::<SlurmState>()));
    assert!(node_list::expand(text).len() <= text.len() + 1024);
});
