/// The callbacks that a class overrides, determined once per class.
///
/// Rows and values of classes that override none have no cost. If every class counted as overriding all of them, a save of 100,000 new
/// objects in memory would take seven times as long, and a fetch a third longer. A declaration in the class could be forgotten, and the
/// callback would then never be called.
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
  /// ``ManagedObject/willSave()`` or ``ManagedObject/didSave()``.
  static let save = ClassHooks(rawValue: 16)
  /// Any validation rule of the class.
  static let validate: ClassHooks = [.validateProperties, .validateObjects]

  /// The callbacks that a class, or a class between it and `ManagedObject`, overrides.
  static func overridden(by type: ManagedObject.Type) -> ClassHooks {
    var hooks: ClassHooks = []
    if type == ManagedObject.self { return hooks }
    if MethodTable.overrides(type, MethodTable.awakeFromFetch) { hooks.insert(.awakeFromFetch) }
    if MethodTable.overrides(type, MethodTable.willTurnIntoFault) || MethodTable.overrides(type, MethodTable.didTurnIntoFault) {
      hooks.insert(.turnIntoFault)
    }
    if MethodTable.overrides(type, MethodTable.validate) { hooks.insert(.validateProperties) }
    if MethodTable.validateFor.contains(where: { MethodTable.overrides(type, $0) }) { hooks.insert(.validateObjects) }
    if MethodTable.overrides(type, MethodTable.willSave) || MethodTable.overrides(type, MethodTable.didSave) { hooks.insert(.save) }
    return hooks
  }
}

/// Compares the methods of classes in the classes' metadata.
///
/// Swift has no query for whether a method is overridden. A class's metadata contains its methods at the same offsets as its superclass's,
/// with the same word unless it overrides them. The offset of a method is where a class that overrides only it differs from
/// `ManagedObject`, and a class that overrides nothing doesn't. If the offset can't be determined, every class counts as overriding the
/// method: it may be called needlessly but is never missed.
private enum MethodTable {
  static let awakeFromFetch = place(OverridesAwakeFromFetch.self)
  static let willTurnIntoFault = place(OverridesWillTurnIntoFault.self)
  static let didTurnIntoFault = place(OverridesDidTurnIntoFault.self)
  static let willSave = place(OverridesWillSave.self)
  static let didSave = place(OverridesDidSave.self)
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

  /// The words of a class's metadata from its address point.
  private static func words(_ type: ManagedObject.Type) -> UnsafePointer<UInt> { unsafeBitCast(type, to: UnsafePointer<UInt>.self) }

  /// The number of words of `ManagedObject`; its subclasses have at least as many.
  ///
  /// The size and the address point of a class are at fixed offsets, documented in Swift's description of type metadata.
  private static let wordCount: Int = {
    #if canImport(ObjectiveC)
      // The metadata layout differs there, and methods may be signed.
      return 0
    #else
      let metadata = UnsafeRawPointer(words(ManagedObject.self))
      let (size, start) = (metadata.load(fromByteOffset: 32, as: UInt32.self), metadata.load(fromByteOffset: 36, as: UInt32.self))
      return (Int(size) - Int(start)) / MemoryLayout<UInt>.size
    #endif
  }()

  private final class OverridesNothing: ManagedObject {}

  // Never called. Each body differs from that of `ManagedObject`, so that an optimizer doesn't merge them.
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
  private final class OverridesWillSave: ManagedObject {
    override func willSave() { mapIndex = 8 }
  }
  private final class OverridesDidSave: ManagedObject {
    override func didSave() { mapIndex = 9 }
  }
}
