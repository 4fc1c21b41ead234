import HoldfastAtomicStore
import HoldfastStore

/// The links of the relationships in ``XMLModel/listed`` and ``XMLModel/stated``.
struct XMLLists {
  let listed: [WrittenLinks]
  let stated: [WrittenLinks]

  init(_ generation: TableGeneration, _ model: XMLModel) {
    listed = model.listed.map { WrittenLinks(generation, $0) }
    stated = model.stated.map { WrittenLinks(generation, $0) }
  }
}
