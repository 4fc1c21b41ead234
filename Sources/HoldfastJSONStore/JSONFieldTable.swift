import HoldfastAtomicStore

/// The fields of an entity, stored so that reading or writing a member doesn't retain anything.
final class JSONFieldTable {
  let entity: JSONEntity?
  let count: Int
  /// For each field, the text before its value: a comma, the quoted name, a colon.
  let names: NameTable
  private let kinds: UnsafeMutablePointer<JSONEntity.Kind>

  init(_ entity: JSONEntity?) {
    self.entity = entity
    let fields = entity?.fields ?? []
    count = fields.count
    // Property names are identifiers and need no escaping.
    names = NameTable(fields.map { (before: ",\"", name: $0.name, behind: "\":") })
    kinds = .allocate(capacity: max(count, 1))
    for (place, field) in fields.enumerated() { (kinds + place).initialize(to: field.kind) }
  }

  deinit { kinds.deallocate() }

  /// The kind of the field at an index.
  @inline(__always) func kind(_ place: Int) -> JSONEntity.Kind { kinds[place] }

  /// The name of the field at an index.
  func name(_ place: Int) -> String { entity?.fields[place].name ?? "" }

  /// The index of the field with a name, or nil if there is none. The search starts after `last`.
  @inline(__always) func place(named text: UnsafeRawBufferPointer, after last: Int) -> Int? { names.place(named: text, after: last) }
}
