import HoldfastStore

// Step 1: the colours of values.
extension StructureMatching {
  /// Gives all objects without a partner the colours of their values, and the others their final colours.
  func colourByValues() throws {
    for entity in concreteEntities {
      var colours: [[UInt64]] = []
      for side in Side.allCases {
        var found: [(rank: Int, colour: UInt64)] = []
        let reader = readers[side.rawValue], pairs = pairs
        try reader.forEachRow(of: entity) { row in
          guard let rank = reader.rank(row.key, entity.rootIndex), pairs.isUnpaired(side, entity.rootIndex, rank) else { return }
          found.append((rank, try Self.colour(of: row.pointer, entity, reader)))
        }
        found.sort { $0.rank < $1.rank }
        open[side.rawValue][entity.index] = found.map(\.rank)
        colours.append(found.map(\.colour))
      }
      for rank in readers[0].ranks(of: entity) where !pairs.isUnpaired(.first, entity.rootIndex, rank) {
        if let partner = pairs.partner(.first, entity.rootIndex, rank) {
          colourPair(entity, rank, partner)
        } else {
          colourSingle(.first, entity, rank)
        }
      }
      for rank in readers[1].ranks(of: entity)
      where !pairs.isUnpaired(.second, entity.rootIndex, rank) && pairs.partner(.second, entity.rootIndex, rank) == nil {
        colourSingle(.second, entity, rank)
      }
      split(entity, colours, nil)
    }
  }

  /// The colour of an object's values, without links and values that follow from other objects.
  private static func colour(of row: RowPointer, _ entity: ManagedObjectModel.Entity, _ reader: GraphReader) throws -> UInt64 {
    var colour = GraphHash.mixed(entity.index.rawValue, 6)
    for attribute in entity.attributes where attribute.derivation == nil {
      // Objects in attributes are links.
      colour = GraphHash.mixed(colour, GraphHash.of(try reader.content(of: row, attribute, entity)) { _, _ in 1 })
    }
    return colour
  }
}
