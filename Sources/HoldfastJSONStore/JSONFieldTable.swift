import HoldfastAtomicStore

/// The fields of an entity as reader and writer go over them: without anything to retain for each member of each object.
final class JSONFieldTable {
  let entity: JSONEntity?
  let count: Int
  /// The names, each as what stands before a field's value: a comma, the name in quotes, a colon.
  let names: NameTable
  private let kinds: UnsafeMutablePointer<JSONEntity.Kind>

  init(_ entity: JSONEntity?) {
    self.entity = entity
    let fields = entity?.fields ?? []
    count = fields.count
    // Names of properties are identifiers: nothing in them has to be escaped.
    names = NameTable(fields.map { (before: ",\"", name: $0.name, behind: "\":") })
    kinds = .allocate(capacity: max(count, 1))
    for (place, field) in fields.enumerated() { (kinds + place).initialize(to: field.kind) }
  }

  deinit { kinds.deallocate() }

  /// What a field holds.
  @inline(__always) func kind(_ place: Int) -> JSONEntity.Kind { kinds[place] }

  /// The name of a field.
  func name(_ place: Int) -> String { entity?.fields[place].name ?? "" }

  /// The place of the field of a name, which is likely behind another; nil when there is none.
  @inline(__always) func place(named text: UnsafeRawBufferPointer, after last: Int) -> Int? { names.place(named: text, after: last) }
}
