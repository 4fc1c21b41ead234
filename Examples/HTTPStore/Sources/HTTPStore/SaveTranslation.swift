import HoldfastStore
import ServiceAPI

/// Translates a save to one that the service applies, in the order that ``HoldfastStore/SaveRequest`` specifies.
struct SaveTranslation {
  private let model: ManagedObjectModel
  private let request: SaveRequest
  private var result = Save()

  init(_ session: HTTPStore.Session, _ request: SaveRequest) { (model, self.request) = (session.model, request) }

  consuming func save() -> Save {
    for changes in request.entities {
      addRows(changes, model.entities[changes.entity])
      addUniqueness(changes, model.entities[changes.entity])
      addSevering(of: changes.deleted.keys, model.entities[changes.entity])
      for derived in changes.derived { addDerived(derived, model.entities[changes.entity]) }
    }
    for changes in request.links { addLinks(changes, model.entities[changes.entity].relationships[changes.relationship]) }
    for changes in request.orders { addOrder(changes, model.entities[changes.entity].relationships[changes.relationship]) }
    return result
  }

  private func id(_ key: ObjectKey, of entity: ManagedObjectModel.Entity) -> RowID {
    RowID(table: model.table(of: entity), key: key.rawValue)
  }

  // MARK: Rows

  private mutating func addRows(_ changes: SaveRequest.EntityChanges, _ entity: ManagedObjectModel.Entity) {
    for batch in changes.inserted {
      for index in 0..<batch.count { result.inserted.append(row(batch.pointer(index), entity) { _ in true }) }
    }
    for updated in changes.updated {
      for index in 0..<updated.rows.count {
        let row = updated.rows.pointer(index)
        addCondition(row.key, updated.expectedVersions[index], entity)
        result.updated.append(self.row(row, entity) { updated.isChanged(row: index, slot: $0) })
      }
    }
    for keyed in [changes.deleted, changes.locked] {
      for (key, version) in zip(keyed.keys, keyed.expectedVersions) { addCondition(key, version, entity) }
    }
    result.deleted += changes.deleted.keys.map { id($0, of: entity) }
  }

  private mutating func addUniqueness(_ changes: SaveRequest.EntityChanges, _ entity: ManagedObjectModel.Entity) {
    for (index, slots) in entity.uniqueSlots.enumerated() {
      var keys: Set<ObjectKey> = [], owner = entity
      for batch in changes.inserted { for index in 0..<batch.count { keys.insert(batch.pointer(index).key) } }
      for updated in changes.updated {
        for index in 0..<updated.rows.count where slots.contains(where: { updated.isChanged(row: index, slot: $0) }) {
          keys.insert(updated.rows.pointer(index).key)
        }
      }
      if keys.isEmpty { continue }
      // An inherited constraint applies to all objects of the entity that declares it.
      while index < owner.inheritedConstraintCount, let above = owner.superentityIndex { owner = model.entities[above] }
      result.unique.append(
        Uniqueness(model.selection(of: owner), fields: slots.map { entity.slots[$0].name }, keys: Set(keys.map(\.rawValue))))
    }
  }

  private mutating func addCondition(_ key: ObjectKey, _ version: RowVersion, _ entity: ManagedObjectModel.Entity) {
    result.conditions.append(Condition(id(key, of: entity), ifMatch: version.rawValue))
  }

  private func row(_ row: RowPointer, _ entity: ManagedObjectModel.Entity, where isSent: (SlotIndex) -> Bool) -> Row {
    var fields: [String: FieldValue] = [:]
    for slot in entity.slotIndexes where isSent(slot) { fields[entity.slots[slot].name] = value(row, slot, entity) }
    return Row(table: model.table(of: entity), type: entity.name, key: row.key.rawValue, etag: row.version.rawValue, fields: fields)
  }

  private func value(_ row: RowPointer, _ slot: SlotIndex, _ entity: ManagedObjectModel.Entity) -> FieldValue {
    FieldValue(row.value(slot, entity.slots[slot].columnType))
  }

  private mutating func addDerived(_ derived: SaveRequest.DerivedRows, _ entity: ManagedObjectModel.Entity) {
    for index in 0..<derived.rows.count {
      let row = derived.rows.pointer(index)
      for slot in derived.slots(row: index) {
        let attribute = entity.slots[slot], given = value(row, slot, entity)
        var change = FieldChange.Change.set(value: given)
        if derived.isAdded(row: index, slot: slot) {
          switch given {
          case .integer(let amount):
            guard case .attribute(let type) = attribute.columnType, let range = type.integerRange else { continue }
            change = .add(amount: amount, from: range.lowerBound, through: range.upperBound)
          case .text(let amount): change = .addDecimal(amount: amount)
          default: continue
          }
        }
        result.derived.append(FieldChange(id(row.key, of: entity), field: attribute.name, change))
      }
    }
  }

  // MARK: References and links

  /// References to deleted objects become null, unless the delete rule is `noAction`.
  private mutating func addSevering(of deleted: [ObjectKey], _ entity: ManagedObjectModel.Entity) {
    if deleted.isEmpty { return }
    func add(_ references: Severing.References) { result.severed.append(Severing(references, keys: Set(deleted.map(\.rawValue)))) }
    for relationship in entity.relationships where relationship.deleteRule != .noAction {
      let inverse = model.inverse(of: relationship)
      if relationship.storesLinks { add(.linksFromSources(relationship: model.linkName(relationship))) }
      if let inverse, inverse.storesLinks { add(.linksToTargets(relationship: model.linkName(inverse))) }
      if let inverse, !inverse.isToMany { add(.field(name: inverse.name, of: model.selection(of: model.entities[inverse.entityIndex]))) }
    }
    for relationship in entity.linksWithoutInverse { add(.linksToTargets(relationship: model.linkName(relationship))) }
  }

  private mutating func addLinks(_ changes: SaveRequest.LinkChanges, _ relationship: ManagedObjectModel.Relationship) {
    let name = model.linkName(relationship)
    result.unlinked += changes.removed.map { Link(name, source: $0.source.rawValue, target: $0.target.rawValue) }
    result.linked += changes.added.map {
      Link(name, source: $0.source.rawValue, target: $0.target.rawValue, isExclusive: relationship.hasTargetsToItself)
    }
  }

  /// The position is kept with the link, which is a row of its own or a field of the destination.
  private mutating func addOrder(_ changes: SaveRequest.OrderChanges, _ relationship: ManagedObjectModel.Relationship) {
    for (link, order) in zip(changes.links, changes.keys) {
      let position: Position =
        switch model.path(of: relationship) {
        case .links(let name, false, _):
          .ofTarget(link: Link(name, source: link.source.rawValue, target: link.target.rawValue), order: order)
        case .links(let name, true, _):
          .ofSource(link: Link(name, source: link.target.rawValue, target: link.source.rawValue), order: order)
        case .rows(let rows, let field): .ofRow(row: RowID(table: rows.table, key: link.target.rawValue), reference: field, order: order)
        }
      result.positions.append(position)
    }
  }
}
