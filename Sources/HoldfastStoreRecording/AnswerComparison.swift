import HoldfastStore

/// Finds the first difference between the rows of two answers whose digests differ.
struct AnswerComparison {
  let model: ManagedObjectModel
  let recorded: AnswerDigest
  let replayed: AnswerDigest
  let showsValues: Bool

  typealias Texts = (expected: String, actual: String)

  private struct Row {
    let batch: RowBatch
    let index: Int
    var pointer: RowPointer { batch.pointer(index) }
  }

  /// The first difference between the objects of two answers; nil if only the order differs.
  func difference(_ expected: [RowBatch], _ actual: [RowBatch]) -> Texts? {
    var missing: [RecordedObject: Row] = [:]
    forEach(expected) { row, entity in missing[recorded.object(row.pointer, entity)] = row }
    var found: Texts?
    forEach(actual) { row, entity in
      if found != nil { return }
      let object = replayed.object(row.pointer, entity)
      let name = "\(entity.name) with \(object.key < 0 ? "an unknown key" : "key \(object.key)")"
      guard let other = missing.removeValue(forKey: object) else {
        found = ("no \(name)", "one")
        return
      }
      found = difference(other, row, entity, object).map { ("\(name) with \($0)", "\($1)") }
    }
    if let found { return found }
    guard let object = missing.keys.min(), let entity = model.entity(at: object.root) else { return nil }
    return ("\(missing[object]?.batch.entity(in: model)?.name ?? entity.name) with key \(object.key)", "none")
  }

  private func difference(
    _ expected: Row, _ actual: Row, _ entity: ManagedObjectModel.Entity, _ object: RecordedObject
  ) -> Texts? {
    guard let other = expected.batch.entity(in: model), other === entity else { return ("another entity", "\(entity.name)") }
    let versions = (expected.pointer.version, replayed.version(actual.pointer, object))
    if versions.0 != versions.1 { return ("version \(versions.0)", "version \(versions.1)") }
    if recorded.isOfKeys { return nil }
    let layout = actual.batch.layout
    guard layout == expected.batch.layout else { return ("other columns", "\(layout.columns.count) columns") }
    for slot in layout.slots {
      let column = layout.columns[slot]
      if recorded.digest(of: expected.pointer, slot, column, entity) == replayed.digest(of: actual.pointer, slot, column, entity) {
        continue
      }
      let name = entity.slots[slot].name
      guard showsValues else { return ("the recorded value of \(name)", "a different value") }
      let values = (expected.pointer.value(slot, column), actual.pointer.value(slot, column))
      return ("\(name) = \(values.0)", "\(values.1)")
    }
    return nil
  }

  private func forEach(_ batches: [RowBatch], _ body: (Row, ManagedObjectModel.Entity) -> Void) {
    for batch in batches {
      guard let entity = batch.entity(in: model) else { continue }
      for index in 0..<batch.count { body(Row(batch: batch, index: index), entity) }
    }
  }
}
