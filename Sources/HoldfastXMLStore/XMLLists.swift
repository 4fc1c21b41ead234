import HoldfastAtomicStore
import HoldfastStore

/// The links of a model's listed and stated relationships.
struct XMLLists {
  let listed: [WrittenLinks]
  let stated: [WrittenLinks]

  init(_ generation: TableGeneration, _ model: XMLModel) {
    listed = model.listed.map { WrittenLinks(generation, $0) }
    stated = model.stated.map { WrittenLinks(generation, $0) }
  }
}
