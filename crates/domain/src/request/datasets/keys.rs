//! The names of data in specifications, as tables.

/// The role of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Unknown.
    Other,
    /// Part of a data set's description: paths and URIs in it are data, other texts may be anything.
    Data,
    /// The location of data.
    Location,
    /// Small, or created by the job itself: it may be remote, and need not exist.
    Auxiliary,
}

/// Keys of data set descriptions, also with a prefix, as in `train_dataset` or `val_data_sources`.
const DATA: [&str; 6] = ["dataset", "datasets", "data_source", "data_sources", "dataset_uri", "dataset_uris"];

/// Keys of data locations anywhere, also with a prefix, as in `train_dataset_dir`.
const LOCATIONS: [&str; 21] = [
    "ann_file",
    "ann_path",
    "annotation_file",
    "annotation_path",
    "csv_path",
    "data_path",
    "data_root",
    "dataset_dir",
    "dataset_path",
    "dataset_root",
    "dataset_uri",
    "dataset_uris",
    "image_dir",
    "images_dir",
    "img_dir",
    "json_file",
    "media_dir",
    "media_path",
    "tfrecords_path",
    "video_dir",
    "video_path",
];

/// Keys of data locations within a data set's description. Elsewhere they may mean anything.
const LOCATIONS_IN_DATA: [&str; 12] = [
    "base_dir",
    "data_dir",
    "gt_file",
    "instance_json",
    "json_path",
    "label_dir",
    "label_path",
    "mask_dir",
    "panoptic_dir",
    "panoptic_json",
    "root",
    "root_dir",
];

/// Keys of the base directory of relative paths beside them.
const ROOTS: [&str; 12] = [
    "base_dir",
    "data_dir",
    "data_path",
    "data_root",
    "dataset_dir",
    "dataset_path",
    "dataset_root",
    "image_dir",
    "images_dir",
    "media_dir",
    "root",
    "root_dir",
];

/// A key with one of these parts is never a data set.
const AUXILIARY: [&str; 22] = [
    "backbone",
    "cache",
    "character_list",
    "checkpoint",
    "class_names",
    "classes_file",
    "classmap",
    "config",
    "engine_file",
    "label_map",
    "labelmap",
    "log_dir",
    "model_file",
    "model_name",
    "model_path",
    "onnx",
    "output",
    "pretrained",
    "results",
    "resume",
    "tokenizer",
    "weights",
];

/// The role of a key's value, from the key and from the role around it.
pub(super) fn role(key: &str, parent: Role) -> Role {
    let key = key.to_ascii_lowercase();
    if AUXILIARY.iter().any(|part| key.contains(part)) {
        return Role::Auxiliary;
    }
    match parent {
        Role::Auxiliary => Role::Auxiliary,
        _ if ends_as(&key, &LOCATIONS) => Role::Location,
        Role::Data | Role::Location if ends_as(&key, &LOCATIONS_IN_DATA) => Role::Location,
        _ if ends_as(&key, &DATA) => Role::Data,
        Role::Other => Role::Other,
        Role::Data | Role::Location => Role::Data,
    }
}

pub(super) fn names_a_root(key: &str) -> bool {
    ends_as(&key.to_ascii_lowercase(), &ROOTS)
}

/// Whether the key is one of the names, or ends in `_` and one of them.
fn ends_as(key: &str, names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| key.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('_')))
}
