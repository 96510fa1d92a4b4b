//! The images for jobs of TAO's own services.

use domain::{ContainerImages, ImageRef};

use super::{problems::Problems, settings::Tao};

pub(super) fn images(settings: &Tao, problems: &mut Problems) -> ContainerImages {
    let mut read = |key: String, text: &str| match text.parse::<ImageRef>() {
        Ok(image) => Some(image),
        Err(error) => {
            problems.add(key, error);
            None
        }
    };
    let default =
        settings.default_image.as_deref().and_then(|text| read("tao.default_image".to_owned(), text));
    let named = settings
        .images
        .iter()
        .filter_map(|(network, text)| Some((network.clone(), read(format!("tao.images.{network}"), text)?)));
    ContainerImages { by_network: named.collect(), default }
}
