/// Which callbacks a class overrides that would otherwise be called for every row that is read or every value that is saved: found
/// out once per class, so that classes which override none pay for none.
struct ClassHooks: OptionSet, Sendable {
  let rawValue: UInt8
  /// ``ManagedObject/awakeFromFetch()``.
  static let awakeFromFetch = ClassHooks(rawValue: 1)
  /// ``ManagedObject/willTurnIntoFault()`` or ``ManagedObject/didTurnIntoFault()``.
  static let turnIntoFault = ClassHooks(rawValue: 2)
  /// ``ManagedObject/validate(_:forKey:)``.
  static let validateProperties = ClassHooks(rawValue: 4)
  /// ``ManagedObject/validateForInsert()``, ``ManagedObject/validateForUpdate()`` or ``ManagedObject/validateForDelete()``.
  static let validateObjects = ClassHooks(rawValue: 8)
  /// Any rule of the class's own.
  static let validate: ClassHooks = [.validateProperties, .validateObjects]

  /// The callbacks that a class, or one between it and `ManagedObject`, overrides.
  static func overridden(by type: ManagedObject.Type) -> ClassHooks {
    var hooks: ClassHooks = []
    if type == ManagedObject.self { return hooks }
    if MethodTable.overrides(type, MethodTable.awakeFromFetch) { hooks.insert(.awakeFromFetch) }
    if MethodTable.overrides(type, MethodTable.willTurnIntoFault) || MethodTable.overrides(type, MethodTable.didTurnIntoFault) {
      hooks.insert(.turnIntoFault)
    }
    if MethodTable.overrides(type, MethodTable.validate) { hooks.insert(.validateProperties) }
    if MethodTable.validateFor.contains(where: { MethodTable.overrides(type, $0) }) { hooks.insert(.validateObjects) }
    return hooks
  }
}

/// Compares the methods of classes where they stand in the classes' metadata.
///
/// Swift has no question for "is this method overridden". A class's metadata has its methods in the places in which its
/// superclass has them, and the same word there when it does not override. The place of a method is where a class that
/// overrides it alone differs from `ManagedObject` and a class that overrides nothing does not. Where that cannot be told,
/// every class counts as one that overrides the method: it is called for nothing then, never missed.
private enum MethodTable {
  static let awakeFromFetch = place(OverridesAwakeFromFetch.self)
  static let willTurnIntoFault = place(OverridesWillTurnIntoFault.self)
  static let didTurnIntoFault = place(OverridesDidTurnIntoFault.self)
  static let validate = place(OverridesValidate.self)
  static let validateFor = [
    place(OverridesValidateForInsert.self), place(OverridesValidateForUpdate.self), place(OverridesValidateForDelete.self),
  ]

  static func overrides(_ type: ManagedObject.Type, _ place: Int?) -> Bool {
    guard let place else { return true }
    return words(type)[place] != words(ManagedObject.self)[place]
  }

  private static func place(_ marker: ManagedObject.Type) -> Int? {
    let (base, none, one) = (words(ManagedObject.self), words(OverridesNothing.self), words(marker))
    let places = (0..<wordCount).filter { base[$0] == none[$0] && base[$0] != one[$0] }
    return places.count == 1 ? places[0] : nil
  }

  /// The words of a class's metadata from its address point on.
  private static func words(_ type: ManagedObject.Type) -> UnsafePointer<UInt> { unsafeBitCast(type, to: UnsafePointer<UInt>.self) }

  /// How many words `ManagedObject` has there; classes below it have as many and more. The size and the address point of a
  /// class stand at fixed places of its metadata, which Swift's document on the layout of metadata says.
  private static let wordCount: Int = {
    #if canImport(ObjectiveC)
      // Classes look different there, and their methods may be signed.
      return 0
    #else
      let metadata = UnsafeRawPointer(words(ManagedObject.self))
      let (size, start) = (metadata.load(fromByteOffset: 32, as: UInt32.self), metadata.load(fromByteOffset: 36, as: UInt32.self))
      return (Int(size) - Int(start)) / MemoryLayout<UInt>.size
    #endif
  }()

  private final class OverridesNothing: ManagedObject {}

  // What these do is never done; it differs from what `ManagedObject` does, so that no optimiser makes one of both.
  private final class OverridesAwakeFromFetch: ManagedObject {
    override func awakeFromFetch() { mapIndex = 1 }
  }
  private final class OverridesWillTurnIntoFault: ManagedObject {
    override func willTurnIntoFault() { mapIndex = 2 }
  }
  private final class OverridesValidate: ManagedObject {
    override func validate(_ value: PropertyValue, forKey key: String) throws { mapIndex = 4 }
  }
  private final class OverridesValidateForInsert: ManagedObject {
    override func validateForInsert() throws { mapIndex = 5 }
  }
  private final class OverridesValidateForUpdate: ManagedObject {
    override func validateForUpdate() throws { mapIndex = 6 }
  }
  private final class OverridesValidateForDelete: ManagedObject {
    override func validateForDelete() throws { mapIndex = 7 }
  }
  private final class OverridesDidTurnIntoFault: ManagedObject {
    override func didTurnIntoFault() { mapIndex = 3 }
  }
}
