//! The names that specifications have for data, as tables.

/// What a value under a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing that we know of.
    Other,
    /// Part of the description of a data set: paths and URIs in it are data, other texts may be anything.
    Data,
    /// The place of data, and nothing else.
    Location,
    /// Small, or made by the job itself: it may be remote, and need not exist.
    Auxiliary,
}

/// Keys of descriptions of data sets; also behind a prefix, as in `train_dataset` or `val_data_sources`.
const DATA: [&str; 6] = ["dataset", "datasets", "data_source", "data_sources", "dataset_uri", "dataset_uris"];

/// Keys that name a place of data wherever they stand; also behind a prefix, as in `train_dataset_dir`.
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

/// Keys that name a place of data in the description of a data set; elsewhere they may mean anything.
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

/// Keys that name the directory which the relative paths beside them begin at.
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

/// Parts of keys that say: no data set, whatever stands around them.
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

/// What the value under a key is, from the key and from what it stands in.
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

/// The key itself, or with a prefix before `_`.
fn ends_as(key: &str, names: &[&str]) -> bool {
    names
        .iter()
        .any(|name| key.strip_suffix(name).is_some_and(|front| front.is_empty() || front.ends_with('_')))
}
