//! The largest core that fits, where one does not.

use super::run::Error;
use heddle_simt::Shape;

/// Of the same options and as many warps, the core with the most lanes that fits; if none does, with half the warps,
/// and so on. The smallest are tried first, since they take the least time.
pub fn largest(shape: &Shape, mut fits: impl FnMut(&Shape) -> Result<bool, Error>) -> Result<Option<Shape>, Error> {
    let mut warps = shape.warps;
    while warps > 0 {
        let most = if warps == shape.warps { shape.lanes / 2 } else { shape.lanes };
        let lanes = std::iter::successors(Some(1), |lanes| Some(2 * lanes)).take_while(|&lanes| lanes <= most);
        // Some options need more lanes.
        let possible = lanes.map(|lanes| Shape { lanes, warps, ..shape.clone() }).filter(|shape| shape.check().is_ok());
        let mut found = None;
        for smaller in possible {
            if !fits(&smaller)? {
                break;
            }
            found = Some(smaller);
        }
        if found.is_some() {
            return Ok(found);
        }
        warps /= 2;
    }
    Ok(None)
}

/// The end of a message: what fits.
pub fn told(shape: &Shape, largest: Option<&Shape>) -> String {
    match largest {
        Some(Shape { lanes, warps, .. }) => {
            format!("; --lanes {lanes} --warps {warps} fits, by the cells after synthesis")
        }
        None if shape.threads() == 1 => String::new(),
        None => "; nor does any with fewer lanes and warps".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_lanes_and_then_fewer_warps() {
        let asked = Shape::new(16, 8);
        let tried = |fits: fn(&Shape) -> bool| {
            let mut all = Vec::new();
            let found = largest(&asked, |shape| {
                all.push((shape.lanes, shape.warps));
                Ok(fits(shape))
            });
            let found = found.unwrap();
            (told(&asked, found.as_ref()), all)
        };
        let (text, all) = tried(|shape| shape.lanes <= 4);
        assert_eq!(text, "; --lanes 4 --warps 8 fits, by the cells after synthesis");
        assert_eq!(all, [(1, 8), (2, 8), (4, 8), (8, 8)]);
        let (text, all) = tried(|shape| shape.threads() <= 4);
        assert_eq!(text, "; --lanes 1 --warps 4 fits, by the cells after synthesis");
        assert_eq!(all, [(1, 8), (1, 4), (2, 4)]);
        assert_eq!(tried(|_| false).0, "; nor does any with fewer lanes and warps");
        let one = Shape::new(1, 1);
        assert_eq!(told(&one, largest(&one, |_| panic!("there is none")).unwrap().as_ref()), "");
    }
}
