/// How large a model file may be, and whether its regular expressions are accepted. A file beyond a limit is refused with
/// ``ModelFileError/Code/tooLarge`` before memory is taken for it.
///
/// The defaults are far above every real model. Xcode's own largest have a few thousand elements.
public struct ModelFileOptions: Sendable, Hashable {
  /// The largest number of bytes of a `contents` file, and of the texts of a compiled model, where shared texts count each time: 64 MiB.
  public var maximumByteCount = 64 << 20
  /// The largest number of elements in each other: 64. A model needs 6.
  public var maximumDepth = 64
  /// The largest number of elements: 100,000.
  public var maximumElementCount = 100_000
  /// The largest number of XML attributes in all elements together, or of values in the lists of a compiled model, where shared lists count
  /// each time: 2,000,000.
  public var maximumAttributeCount = 2_000_000
  /// The largest number of XML attributes of one element: 256.
  public var maximumAttributesPerElement = 256
  /// The largest number of bytes of one XML attribute's value, as written: 1 MiB.
  public var maximumValueByteCount = 1 << 20
  /// The largest number of files and folders in a bundle: 10,000.
  public var maximumFileCount = 10_000
  /// The largest number of entities of a model, and of configurations: 5,000.
  public var maximumEntityCount = 5_000
  /// The largest number of properties of all entities of a model together, inherited ones counted in each: 200,000.
  public var maximumPropertyCount = 200_000
  /// Whether a model with a regular expression is refused. Defaults to false. A regular expression is code, and some run for any time on a
  /// short text: set this for models from sources that you don't trust.
  public var refusesPatterns = false

  /// The defaults.
  public init() {}
}
