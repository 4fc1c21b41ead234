#if Macros
  public import FoundationEssentials
  public import Holdfast

  /// Public types, and declarations that are legal but unusual: what the macros add to them compiles.
  public enum Oddities {
    /// An enumeration with a case that an optional has, too.
    public enum Lock: Int16, CaseIterable, AttributeValue, Sendable { case chain, none, bolt }

    enum Measure: String, CaseIterable, AttributeValue { case metre, foot }

    /// A composite whose elements aren't all public.
    @Composite public struct Size {
      /// A public element.
      public var width = 0.0
      var measure = Measure.metre
      private var secret = 0
    }

    /// A composite whose public element begins with an internal constant.
    @Composite public struct Chest {
      /// A public element.
      public var lock: Oddities.Lock = Chest.usual
      /// An optional element with an initial value.
      public var made: Date? = Date.distantPast
      static let usual = Oddities.Lock.bolt
    }

    /// A class that other modules may inherit from.
    @Entity(isAbstract: true) open class Thing: ManagedObject {
      /// A constant of the type.
      public var made: Date = .distantPast
      var lock: Lock = .none
    }

    /// A class without properties.
    @Entity public final class Plain: Thing {}

    /// A class with comments between its words.
    @Entity
    // between attribute and class
    public
      // between its modifiers
      final class Gadget: Thing
    {
      /// A required property.
      @Attribute(.range(0...9))  // one digit
      // between attribute and property
      public var number: Int  // behind the property
      /// A property with the name of a keyword.
      public var `class`: String? = .none
      var `in`: Oddities.Lock? = .bolt
      fileprivate var hidden = Lock.chain
      /// A property that this module sets.
      public private(set) var size = Size()
      /// A property with the name of a function of the macro's code.
      var slotCount = 3
      // Properties with the names of accessors and operators.
      var set = 1
      var get: Int16?
      var copy = Measure.foot
      /// An optional without its mark.
      @Relationship(inverse: \Oddities.Gadget.parts) public var whole: Optional<Gadget>
      @Relationship(deleteRule: .cascade) var parts: ToMany<Gadget>
      #if DEBUG || true
        static let isOdd = true
        var text: String { "\(number)" }
      #endif
      lazy var cache = 3
      weak var observer: AnyObject?
      #Index<Gadget>([\Oddities.Gadget.number, \.made], [\.size.width])
    }
  }

  // What is in an extension has its access.
  // swift-format-ignore: NoAccessLevelOnExtensionDeclaration
  public extension Oddities {
    /// A composite that is public without an own modifier.
    @Composite struct Weight {
      /// A public element.
      public var grams = 0.0
    }

    /// A class that is public without an own modifier.
    @Entity final class Scale: ManagedObject {
      /// A public property.
      public var weight = Weight()
    }
  }
#endif
